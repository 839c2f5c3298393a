// An answer as it is written: `citation` frames become chips, `token` frames text, `done` says how it ended.
function* frames(buffer) {
  for (const block of buffer) {
    const frame = { event: "message", data: "" };
    for (const line of block.split("\n")) {
      if (line.startsWith("event:")) frame.event = line.slice(6).trim();
      if (line.startsWith("data:")) frame.data += line.slice(5).trim();
    }
    if (frame.data) yield frame;
  }
}

function chip(frame, untitled) {
  const link = document.createElement("a");
  link.className = "chip";
  link.href = `/knowledge/${frame.citation.documentId}?chunk=${frame.citation.chunkId}#cited`;
  link.textContent = `[${frame.number}] ${frame.citation.title || untitled}`;
  return link;
}

export async function startAnswer(card) {
  const text = card.querySelector("[data-text]");
  const chips = card.querySelector("[data-chips]");
  const mode = card.querySelector("[data-mode]");
  const answer = await fetch("/v1/answers", {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-CSRF-Token": document.querySelector("meta[name=csrf-token]").content,
    },
    body: JSON.stringify({ question: card.dataset.ask, origin: "dashboard" }),
  });
  if (!answer.ok) {
    const problem = await answer.json();
    text.textContent = problem.detail;
    text.className = "problem";
    return;
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let ended = false;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const blocks = (rest + value.replaceAll("\r\n", "\n")).split("\n\n");
    rest = blocks.pop();
    for (const frame of frames(blocks)) {
      const data = JSON.parse(frame.data);
      if (frame.event === "token") text.append(data.text);
      if (frame.event === "citation") chips.append(chip(data, card.dataset.untitled));
      if (frame.event === "done") {
        ended = true;
        if (data.mode === "extracts") mode.textContent = card.dataset.extracts;
        if (!data.complete) mode.textContent = card.dataset.broken;
      }
    }
  }
  if (!ended) mode.textContent = card.dataset.broken;
  card.dataset.done = "true";
}
