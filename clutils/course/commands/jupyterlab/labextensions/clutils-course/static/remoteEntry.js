// Shift+Enter in a notebook: run the cell and go to the next one that is shown. JupyterLab's own goes to the next
// cell, and opens the folded heading that it lies under. Written by hand, as the built form of an extension is.
(() => {
  const STEP = "clutils:run-and-step", CLOSE = "clutils:close-asides";
  const FOLDS = /^#+ ▸/m;
  // The class is on the output itself only where a saved panel's model is gone; a living one has it further in.
  const ASLEEP = `.jp-OutputArea-output.jupyter-widgets { font-size: 0; }
    .jp-OutputArea-output.jupyter-widgets::after { font-size: var(--jp-content-font-size1);
      content: "This panel was saved by a kernel that has ended. To use it again, select its cell, choose"
        " Run → Run All Above Selected Cell, then press Shift+Enter."; }`;

  function activate(app) {
    document.head.append(Object.assign(document.createElement("style"), { textContent: ASLEEP }));
    const shown = () => app.shell.currentWidget?.content;

    app.commands.addCommand(STEP, {
      label: "Run Selected Cell, and Pass Folded Headings By",
      execute: () => {
        const notebook = shown(), from = notebook.activeCellIndex;
        let next = from + 1;
        while (next < notebook.widgets.length && notebook.widgets[next].isHidden) next += 1;
        if (next === from + 1 || next === notebook.widgets.length)
          return app.commands.execute("notebook:run-cell-and-select-next");
        const done = app.commands.execute("notebook:run-cell");
        notebook.activeCellIndex = next;
        notebook.deselectAll();
        notebook.scrollToItem(next, "smart");
        return done;
      },
    });
    for (const mode of ["jp-mod-editMode", "jp-mod-commandMode:not(.jp-mod-readWrite) :focus"])
      // one class more than JupyterLab's own binding has, so that this one is taken
      app.commands.addKeyBinding({
        command: STEP, keys: ["Shift Enter"], selector: `.jp-NotebookPanel .jp-Notebook.${mode}`,
      });

    app.commands.addCommand(CLOSE, {
      label: "Close the Asides (▸)",
      isEnabled: () => Boolean(shown()?.widgets),
      execute: () => {
        for (const cell of shown().widgets)
          if (cell.model.type === "markdown" && FOLDS.test(cell.model.sharedModel.getSource()))
            cell.headingCollapsed = true;
      },
    });
  }

  const extension = { __esModule: true, default: { id: "clutils-course:plugin", autoStart: true, activate } };
  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB["clutils-course"] = { init: () => {}, get: () => Promise.resolve(() => extension) };
})();
