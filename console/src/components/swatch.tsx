// The colour and the dashes of a series, in a legend.

import { colour, dash, isDark } from '../theme';

export function Swatch({ index }: { index: number }) {
  return (
    <svg class="swatch" viewBox="0 0 24 8" aria-hidden="true">
      <line x1="0" y1="4" x2="24" y2="4" stroke={colour(index, isDark.value)} stroke-width="3" stroke-dasharray={dash(index).join(' ')} />
    </svg>
  );
}
