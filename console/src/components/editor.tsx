// The editor of one PromQL expression: highlighting, completion from this server, errors where the
// server says they are. It lives in a shadow root, where CodeMirror's style sheets are objects and
// no <style> element is made: the content security policy allows none.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { linter, type Diagnostic } from '@codemirror/lint';
import { Compartment, EditorState, Prec, StateEffect, StateField, type Text } from '@codemirror/state';
import { Decoration, drawSelection, EditorView, keymap, placeholder, type DecorationSet } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { PromQLExtension } from '@prometheus-io/codemirror-promql';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { api } from '../api';
import { unitsOf } from '../format';
import { isDark } from '../theme';
import { completion } from './completion';
import { editorTheme } from './editortheme';

interface Properties {
  label: string;
  /** What stands there while it is empty. */
  hint?: string;
  /** The text; the editor takes it over when it or `revision` changes, not while somebody types. */
  text: string;
  /** Changes where the text is set anew, be it the same. */
  revision: number;
  /** Called with each change. */
  onText: (text: string) => void;
  /** Called by Enter. */
  onRun: () => void;
  /** A part of the text that is marked; it goes with the letters while somebody types. */
  mark?: Mark | null;
}

/** From where to where, in UTF-16 units. */
export interface Mark {
  from: number;
  to: number;
}

const setMark = StateEffect.define<Mark | null>();

const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, transaction) {
    let next = shown.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setMark)) continue;
      const to = Math.min(effect.value?.to ?? 0, transaction.newDoc.length);
      const from = effect.value?.from ?? 0;
      next = from < to ? Decoration.set(Decoration.mark({ class: 'cm-marked' }).range(from, to)) : Decoration.none;
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const promql = new PromQLExtension().activateLinter(false).setComplete({ completeStrategy: completion });

const highlighting = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--code-keyword)' },
  { tag: [tags.function(tags.variableName), tags.modifier], color: 'var(--code-function)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--code-string)' },
  { tag: [tags.number, tags.literal], color: 'var(--code-number)' },
  { tag: tags.labelName, color: 'var(--code-label)' },
  { tag: [tags.operator, tags.arithmeticOperator, tags.compareOperator, tags.logicOperator], color: 'var(--code-operator)' },
  { tag: tags.comment, color: 'var(--faint)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--error)' },
]);

const POSITION = /(\d+):(\d+): (parse error: .*)/s;

/** Where an error of the server is in a text. */
function located(doc: Text, text: string): Diagnostic {
  const [, line = '', column = '', message = text] = POSITION.exec(text) ?? [];
  let from = 0;
  if (line) {
    const at = doc.line(Math.min(Math.max(1, Number(line)), doc.lines));
    from = at.from + unitsOf(at.text, Number(column) - 1);
  }
  // At the end of the text there is no letter to mark but the last.
  if (from >= doc.length) from = Math.max(0, doc.length - 1);
  const word = /^\w+/.exec(doc.sliceString(from, doc.length));
  return { from, to: Math.min(doc.length, from + (word?.[0].length ?? 1)), severity: 'error', message };
}

/** Asks the server whether it can read the text. */
async function check(view: EditorView): Promise<Diagnostic[]> {
  const doc = view.state.doc;
  const query = doc.toString();
  if (query.trim() === '') return [];
  const outcome = await api('format_query', { query }, { method: 'POST' });
  return outcome.ok || outcome.status !== 400 ? [] : [located(doc, outcome.text)];
}

/** Scrolls a box that is smaller than its text, and nothing else, to a place in it. */
function scrollTo(box: HTMLElement, view: EditorView, at: number, turns = 3): void {
  view.requestMeasure({
    key: scrollTo,
    read: () => (view.coordsAtPos(at)?.top ?? view.documentTop + view.lineBlockAt(at).top) - box.getBoundingClientRect().top,
    write: (top) => {
      if (box.scrollHeight <= box.clientHeight || (top >= 0 && top <= box.clientHeight - 30)) return;
      box.scrollTop += top - box.clientHeight / 3;
      // Where lines are far away, their heights were a guess.
      if (turns > 1) requestAnimationFrame(() => scrollTo(box, view, at, turns - 1));
    },
  });
}

export function Editor({ label, hint = 'PromQL, such as rate(http_requests_total[5m])', text, revision, onText, onRun, mark = null }: Properties) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ onText, onRun });
  latest.current = { onText, onRun };
  const theme = useRef(new Compartment());
  useLayoutEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: 'open' });
    const run = { key: 'Enter', run: () => { latest.current.onRun(); return true; } };
    const state = EditorState.create({
      doc: text,
      extensions: [
        history(), drawSelection(), bracketMatching(), closeBrackets(), EditorView.lineWrapping,
        placeholder(hint),
        autocompletion({ icons: false }), promql.asExtension(), syntaxHighlighting(highlighting),
        linter(check, { delay: 400 }), marked,
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
        // Completion's own Enter comes first, while its list is open.
        Prec.high(keymap.of([...completionKeymap, run, { key: 'Ctrl-Enter', mac: 'Cmd-Enter', run: run.run }])),
        theme.current.of(editorTheme(isDark.peek())),
        EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', autocapitalize: 'off' }),
        EditorView.updateListener.of((update) => { if (update.docChanged) latest.current.onText(update.state.doc.toString()); }),
      ],
    });
    const made = new EditorView({ state, parent: root, root });
    view.current = made;
    return () => made.destroy();
  }, []);
  // Before the next key can arrive: what is typed is never overwritten by what it was.
  useLayoutEffect(() => {
    const shown = view.current;
    if (shown && shown.state.doc.toString() !== text) {
      shown.dispatch({ changes: { from: 0, to: shown.state.doc.length, insert: text } });
    }
  }, [text, revision]);
  useLayoutEffect(() => {
    view.current?.dispatch({ effects: setMark.of(mark) });
    if (view.current && mark) scrollTo(host.current!, view.current, mark.from);
  }, [mark?.from, mark?.to, text, revision]);
  const dark = isDark.value;
  useEffect(() => { view.current?.dispatch({ effects: theme.current.reconfigure(editorTheme(dark)) }); }, [dark]);
  return <div class="editor" ref={host} />;
}
