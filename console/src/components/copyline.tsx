// A line of text with a button that copies it. Browsers give no clipboard to pages of plain HTTP on
// other machines: there the text is selected, for the keys that copy.

import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon } from './icon';

export function CopyLine({ label, text }: { label: string; text: string }) {
  const code = useRef<HTMLElement>(null);
  const [said, setSaid] = useState('');
  useEffect(() => setSaid(''), [text]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied.');
    } catch {
      getSelection()?.selectAllChildren(code.current!);
      setSaid('Selected, as this browser allows no copying here: press Ctrl-C or Cmd-C.');
    }
  };
  return (
    <div class="copyline">
      <code ref={code} tabIndex={0} role="group" aria-label={label}>{text}</code>
      <button type="button" onClick={() => void copy()} aria-label={`Copy ${label}`}><Icon name="copy" /> Copy</button>
      <span class="hint" role="status">{said}</span>
    </div>
  );
}
