// Dark or light: the system's, or the user's choice, which is kept; and the colours of series.

import { computed, effect, signal } from '@preact/signals';
import { stored } from './stored';

export type Theme = 'system' | 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(system.matches);
system.addEventListener('change', (event) => { systemIsDark.value = event.matches; });

/** What the user chose. */
export const theme = stored<Theme>('theme', 'system');
/** What holds. */
export const isDark = computed(() => (theme.value === 'system' ? systemIsDark.value : theme.value === 'dark'));

effect(() => { document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light'; });

// Okabe and Ito's colours, which colour-blind people tell apart; black and yellow are replaced by
// tones that show on either background. After eight, dashes tell series apart.
const LIGHT = ['#0072b2', '#d55e00', '#009e73', '#b8589b', '#3f9fd8', '#b98300', '#5b5bd6', '#56606b'];
const DARK = ['#56b4e9', '#e8853a', '#1fbf92', '#df94c2', '#4a90e2', '#e6c229', '#9d9dff', '#b4bec8'];
const DASHES: number[][] = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 2]];

/** The colour of the series at `index`. */
export function colour(index: number, dark: boolean): string {
  const colours = dark ? DARK : LIGHT;
  return colours[index % colours.length] ?? '#888';
}

/** The dashes of the series at `index`. */
export function dash(index: number): number[] {
  return DASHES[Math.floor(index / LIGHT.length) % DASHES.length] ?? [];
}
