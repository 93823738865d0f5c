/** Opens the post in the application if the reader is signed in. */
import './post.css';
import { joinSession, token } from '../session.js';

await joinSession(true);
const id = location.pathname.split('/').at(-1) ?? '';
if (token.value !== '') location.replace(`/app#/post/${id}`);
