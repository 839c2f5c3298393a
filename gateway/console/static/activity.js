// New log lines on top, as they are written.
const MOST_ROWS = 500;

export function followLog(table, localTimes) {
  const body = table.tBodies[0];
  const pause = document.querySelector("[data-pause]");
  let source = null;

  function show(message) {
    const line = JSON.parse(message.data);
    const row = document.createElement("tr");
    row.className = `level-${line.level}`;
    const at = document.createElement("td");
    const time = document.createElement("time");
    time.dateTime = line.time;
    time.textContent = line.time;
    at.append(time);
    const event = document.createElement("td");
    event.textContent = line.event;
    const rest = document.createElement("td");
    for (const [key, value] of Object.entries(line.rest)) {
      const field = document.createElement("span");
      field.className = "field";
      field.textContent = `${key}=${value} `;
      rest.append(field);
    }
    row.append(at, event, rest);
    localTimes(row);
    body.prepend(row);
    while (body.rows.length > MOST_ROWS) body.lastElementChild.remove();
  }

  function listen() {
    source = new EventSource(table.dataset.stream);
    source.onmessage = show;
  }

  const words = [pause.textContent, pause.dataset.paused];
  pause.hidden = false;
  pause.addEventListener("click", () => {
    if (source) {
      source.close();
      source = null;
    } else {
      listen();
    }
    pause.textContent = source ? words[0] : words[1];
  });
  listen();
}
