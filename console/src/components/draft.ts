// A selector that is typed: a draft until it is put in the address.

import { useEffect, useState } from 'preact/hooks';
import { setParams } from '../route';

/** The draft of the parameter `name`, which has the value `text`. */
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
