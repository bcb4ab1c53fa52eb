// The console: draws the shell, which draws the page that the address names.

import { render } from 'preact';
import './style/base.css';
import './style/shell.css';
import './style/components.css';
import './theme';
import { Shell } from './shell';

const app = document.getElementById('app');
if (app) render(<Shell />, app);
