// Bars that move while a connection syncs; when everything is done the page is read once more.
export function followProgress(section, again) {
  const source = new EventSource(section.dataset.progress);
  let ran = false;

  function set(row, name, value) {
    const cell = row.querySelector(`[data-${name}]`);
    if (cell) cell.textContent = value;
  }

  function says(surface) {
    return `${surface.waitsFor ?? ""} ${surface.lastError ?? ""}`;
  }

  function show(message) {
    if (!section.isConnected) {
      source.close(); // the page was read again meanwhile
      return;
    }
    const progress = JSON.parse(message.data);
    let running = false;
    let other = false; // why nothing moves is told in words, which are the page's
    for (const surface of progress.surfaces ?? []) {
      const row = section.querySelector(`[data-surface="${CSS.escape(surface.surface)}"]`);
      if (!row) continue;
      const settled = surface.indexed + surface.skipped + surface.failed + (surface.held ?? 0);
      const bar = row.querySelector("progress");
      bar.max = Math.max(surface.found, 1);
      bar.value = settled;
      for (const name of ["found", "indexed", "held", "skipped", "failed"]) set(row, name, surface[name]);
      set(row, "rate", surface.itemsPerSecond ? surface.itemsPerSecond.toFixed(1) : "–");
      set(row, "left", surface.secondsLeft == null ? "–" : `${Math.round(surface.secondsLeft)} s`);
      set(row, "phase", surface.phase);
      if (!surface.done) running = true;
      if (row.dataset.says !== says(surface)) other = true;
      row.dataset.says = says(surface); // said once: who is writing keeps the page as it is
    }
    if (running) ran = true;
    section.dataset.state = running ? "running" : "done";
    const over = ran && !running;
    if (over) source.close(); // the page that is read again has one of its own
    if (over || other) again();
  }

  source.addEventListener("progress", show);
  source.addEventListener("done", (message) => {
    source.close();
    show(message);
  });
}
