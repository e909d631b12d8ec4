// What scrolls sideways can be scrolled by keys.
window.addEventListener("load", () => {
  for (const box of document.querySelectorAll(".formula, table.table")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});
