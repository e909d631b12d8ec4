window.addEventListener("load", () => {
  // What scrolls sideways can be scrolled by keys.
  for (const box of document.querySelectorAll(".formula, table.table")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
  // The corner of a printed data frame is no header, and an arrow of the navigation has a name.
  for (const corner of document.querySelectorAll("th:empty")) corner.replaceWith(document.createElement("td"));
  for (const arrow of document.querySelectorAll("summary .toctree-toggle")) {
    arrow.parentElement.setAttribute("aria-label", "Pages of this section");
  }
});
