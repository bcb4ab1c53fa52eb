// What is typed: a draft until it is put in the address.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { setParams } from '../route';

/** The ref of an input without `value`: it shows `text` whenever that changes, and keeps what is typed however often its page is drawn meanwhile. */
export function useBox(text: string) {
  const box = useRef<HTMLInputElement>(null);
  // At once: later it would take away what has been typed since.
  useLayoutEffect(() => { if (box.current) box.current.value = text; }, [text]);
  return box;
}

/** The draft of the selector in the parameter `name`, which has the value `text`. */
export function useDraft(name: string, text: string) {
  const [draft, setDraft] = useState(text);
  const [revision, setRevision] = useState(0);
  useEffect(() => setDraft(text), [text]);
  return {
    draft: draft.trim(),
    clear: () => {
      setDraft('');
      setRevision(revision + 1);
      setParams({ [name]: null });
    },
    show: () => setParams({ [name]: draft.trim() || null }),
    /** Of its editor. */
    editing: { hint: 'A selector, such as {job="api"}; empty: all series', text, revision, onText: setDraft },
  };
}
