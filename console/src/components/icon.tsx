// Icons of buttons, as lines in the colour of the text.

const PATHS = {
  copy: 'M6 6V3.5A1.5 1.5 0 0 1 7.5 2h5A1.5 1.5 0 0 1 14 3.5v5a1.5 1.5 0 0 1-1.5 1.5H10M3.5 6h5A1.5 1.5 0 0 1 10 7.5v5A1.5 1.5 0 0 1 8.5 14h-5A1.5 1.5 0 0 1 2 12.5v-5A1.5 1.5 0 0 1 3.5 6Z',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z',
  hidden: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM3 13.5 13 2.5',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  format: 'M2 3.5h12M5 8h9M2 12.5h12M2 8h.5',
  tree: 'M2 2.5h5v3H2ZM9 6.5h5v3H9ZM9 11.5h5v3H9ZM4.5 5.5v7.5H9M4.5 8H9',
  left: 'M10 3 5 8l5 5',
  right: 'M6 3l5 5-5 5',
  out: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14M4.5 7h5',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d={PATHS[name]} /></svg>
  );
}
