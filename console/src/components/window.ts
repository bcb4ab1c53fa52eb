// Which rows of a scrolling box are in sight, so that only those are drawn. Rows have one height.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** Rows that are drawn above and below those in sight. */
const BEYOND = 12;
/** The height of a box until it is measured. */
const HEIGHT_PX = 600;

/** The first row of `length` that is drawn, and the one behind the last; `onScroll` belongs to the box. */
export function useWindow(length: number, rowPx: number) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(HEIGHT_PX);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setHeight(box.current?.clientHeight ?? HEIGHT_PX));
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.min(Math.floor(top / rowPx), length) - BEYOND);
  const last = Math.min(length, first + Math.ceil(height / rowPx) + 2 * BEYOND);
  return { box, first, last, onScroll: () => setTop(box.current?.scrollTop ?? 0) };
}
