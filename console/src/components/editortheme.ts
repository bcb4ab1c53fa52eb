// How the editor looks. The colours are the page's, which reach into the shadow root.

import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';

const RULES = {
  '&': { color: 'var(--text)', backgroundColor: 'transparent', fontSize: '14px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-content': { padding: '7px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 10px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-placeholder': { color: 'var(--faint)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': { background: 'var(--selection)' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--selection)' },
  '&.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'transparent', color: 'var(--error)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', border: '1px solid var(--line)', borderRadius: '6px', boxShadow: 'var(--shadow)', color: 'var(--text)', overflow: 'hidden' },
  // Below the line that is typed, whose underscores lie under its letters.
  '.cm-tooltip-autocomplete.cm-tooltip-below': { marginTop: '4px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: '13px', maxHeight: '16em' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px', lineHeight: '1.5' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { background: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-completionDetail': { fontStyle: 'normal', opacity: '0.7', marginLeft: '1em' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-tooltip.cm-completionInfo': { padding: '6px 10px', maxWidth: '26em', fontFamily: 'system-ui, sans-serif', fontSize: '13px' },
  '.cm-diagnostic': { padding: '6px 10px', borderLeft: '3px solid var(--error)', fontFamily: 'system-ui, sans-serif', fontSize: '13px' },
  '.cm-marked': { backgroundColor: 'var(--selection)', borderRadius: '3px' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--error)', textUnderlineOffset: '3px' },
};

const LIGHT = EditorView.theme(RULES);
const DARK = EditorView.theme(RULES, { dark: true });

/** The theme for a dark or light page. */
export function editorTheme(isDark: boolean): Extension {
  return isDark ? DARK : LIGHT;
}
