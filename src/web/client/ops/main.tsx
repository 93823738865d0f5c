/** Starts the operators' page. */
import { createRoot } from 'react-dom/client';
import '../style/base.css';
import './ops.css';
import '../theme.js';
import { Page } from './page.js';

const root = document.getElementById('root');
if (root) createRoot(root).render(<Page />);
