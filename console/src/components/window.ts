// Which rows of a scrolling box are in sight, so that only those are drawn; what of the window a
// chart takes; whether the window is narrow. Rows have one height.

import { signal } from '@preact/signals';
import { useLayoutEffect, useRef, useState, type MutableRef } from 'preact/hooks';

const narrow = matchMedia('(max-width: 760px)');
/** Whether the window is as narrow as the CSS means by it. */
export const isNarrow = signal(narrow.matches);
narrow.addEventListener('change', () => { isNarrow.value = narrow.matches; });

/** The height from the top of `box` to the end of the window, where `below_px` are left for other things. */
export function useFill(box: MutableRef<HTMLElement | null>, below_px: number, least_px: number): number {
  const [height, setHeight] = useState(least_px);
  useLayoutEffect(() => {
    const fit = () => {
      const top = (box.current?.getBoundingClientRect().top ?? 0) + scrollY;
      setHeight(Math.max(least_px, Math.floor(innerHeight - top - below_px)));
    };
    fit();
    // What stands above it grows and shrinks.
    const observer = new ResizeObserver(fit);
    observer.observe(document.body);
    addEventListener('resize', fit);
    return () => {
      observer.disconnect();
      removeEventListener('resize', fit);
    };
  }, []);
  return height;
}

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
