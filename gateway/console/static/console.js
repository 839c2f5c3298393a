// What a page gains from a script: times in the viewer's zone, and the live parts. Every page can be read without it.
import { readAgain } from "/static/again.js";
import { startAnswer } from "/static/answer.js";
import { followLog } from "/static/activity.js";
import { followProgress } from "/static/progress.js";

function localTimes(root) {
  const language = document.documentElement.lang;
  const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  const exact = new Intl.DateTimeFormat(language, { dateStyle: "short", timeStyle: "medium" });
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.textContent = (time.closest(".log") ? exact : format).format(at);
    time.title = at.toISOString();
  }
}

function enliven(root) {
  const again = () => readAgain(enliven);
  localTimes(root);
  for (const card of root.querySelectorAll("[data-ask]")) startAnswer(card);
  for (const table of root.querySelectorAll("[data-stream]")) followLog(table, localTimes);
  for (const section of root.querySelectorAll("[data-progress]")) followProgress(section, again);
  for (const waiting of root.querySelectorAll("[data-refresh]")) {
    setTimeout(again, 1000 * Number(waiting.dataset.refresh));
  }
}

// Where the tabs are wider than the window, the one that is open may lie beyond its edge.
function showOpenTab(tabs) {
  const open = tabs?.querySelector("[aria-current]");
  if (!open) return;
  const [around, tab] = [tabs.getBoundingClientRect(), open.getBoundingClientRect()];
  tabs.scrollLeft += tab.left + tab.width / 2 - (around.left + around.width / 2);
}

showOpenTab(document.querySelector("header nav"));
enliven(document);
