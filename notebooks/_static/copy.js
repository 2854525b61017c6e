// A button on each block of code that copies what a reader would type: no prompts, and no output.
function typed(code) {
  const lines = code.replace(/\n$/, "").split("\n");
  const prompt = /^(>>>|\.\.\.|\$) ?/;
  if (!lines.some((line) => /^(>>>|\$) /.test(line))) return lines.join("\n");

  const kept = [];
  let goes_on = false; // a command goes on after a backslash
  for (const line of lines) {
    if (goes_on || (prompt.test(line) && line !== "...")) kept.push(goes_on ? line : line.replace(prompt, ""));
    goes_on = kept.length > 0 && kept[kept.length - 1].endsWith("\\") && (goes_on || /^\$ /.test(line));
  }
  return kept.join("\n");
}

document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const button = document.createElement("button");
    button.className = "copy-code";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(typed(block.querySelector("pre").textContent));
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
});
