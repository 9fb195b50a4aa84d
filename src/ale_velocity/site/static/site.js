// Marks the page being shown in the navigation, and warns where the newest result is old. Old is judged when the
// page is read, not when it was published.
"use strict";

for (const link of document.querySelectorAll("nav a")) {
  if (link.href === location.href.split("#")[0]) {
    link.setAttribute("aria-current", "page");
  }
}

for (const time of document.querySelectorAll("time[data-stale-after-days]")) {
  const days = Math.floor((Date.now() - new Date(time.dateTime)) / 86_400_000);
  if (days > Number(time.dataset.staleAfterDays)) {
    const warning = document.createElement("p");
    warning.className = "warning";
    warning.setAttribute("role", "status");
    warning.textContent = `The newest result is ${days} days old: newer releases may be missing.`;
    time.closest("p").before(warning);
  }
}
