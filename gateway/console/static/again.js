// Reads the page once more, unless its reader is already on the way elsewhere, because a reload would call them back, or is
// writing into it, because a reload would take their words away.
let leaving = false;
addEventListener("beforeunload", () => { leaving = true; });
addEventListener("pageshow", () => { leaving = false; });

function writing() {
  const fields = [...document.querySelectorAll("input, textarea")];
  return fields.some((field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked);
}

export function readAgain() {
  if (!leaving && !writing()) location.reload();
}
