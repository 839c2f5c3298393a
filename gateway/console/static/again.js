// Reads the page once more, in place: a reload could get in the way of who is going elsewhere, and would lose their scroll position.
// Who is writing into it keeps the page as it is, because their words would go with it.
function writing(main) {
  const fields = [...main.querySelectorAll("input, textarea")];
  return fields.some((field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked);
}

export async function readAgain(enliven) {
  const answer = await fetch(location.href).catch(() => null);
  if (!answer) setTimeout(() => readAgain(enliven), 5000); // the gateway may be on its way back
  if (!answer?.ok || answer.redirected) return; // the next click says why
  const read = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
  const shown = document.querySelector("main");
  if (!read || writing(shown)) return;
  shown.replaceChildren(...read.childNodes);
  enliven(shown);
}
