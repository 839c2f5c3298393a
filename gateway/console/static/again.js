// Reads the page once more, unless its reader is already on the way elsewhere: a reload would call them back.
let leaving = false;
addEventListener("beforeunload", () => { leaving = true; });
addEventListener("pageshow", () => { leaving = false; });

export function readAgain() {
  if (!leaving) location.reload();
}
