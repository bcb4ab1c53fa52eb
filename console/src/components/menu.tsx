// A button that opens a panel below it. Escape, a click elsewhere and leaving by Tab close it.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface Properties {
  label: ComponentChildren;
  title?: string;
  /** Where the panel lies. */
  side?: 'left' | 'right';
  /** The content of the panel; `close` closes it. */
  children: (close: () => void) => ComponentChildren;
}

export function Menu({ label, title, side = 'left', children }: Properties) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const outside = (event: Event) => {
      if (!event.composedPath().includes(box.current!)) setOpen(false);
    };
    document.addEventListener('pointerdown', outside);
    document.addEventListener('focusin', outside);
    return () => {
      document.removeEventListener('pointerdown', outside);
      document.removeEventListener('focusin', outside);
    };
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    box.current?.querySelector('button')?.focus();
  };
  return (
    <div class="menu" ref={box} onKeyDown={(event) => { if (event.key === 'Escape' && isOpen) { event.stopPropagation(); close(); } }}>
      <button type="button" title={title} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{label}<span class="caret" aria-hidden="true" /></button>
      {isOpen && <div class={`panel ${side}`}>{children(close)}</div>}
    </div>
  );
}
