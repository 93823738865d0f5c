/**
 * Starts the first calls of a signed-in person before the application's code is loaded, and passes the answers to the
 * application.
 */
interface EarlyCalls {
  readonly token: string;
  readonly answers: Map<string, Promise<Response>>;
}

const place = globalThis as { petrelEarlyCalls?: EarlyCalls };

const paths = ['/api/me', '/api/chats'] as const;

export function startEarlyCalls(token: string): void {
  const answers = new Map<string, Promise<Response>>();
  for (const path of paths) {
    const answer = fetch(path, { headers: { Authorization: `Bearer ${token}` }, cache: 'no-store' });
    // Prevents an unhandled rejection. The application handles the error when it takes the answer.
    answer.catch(() => {});
    answers.set(path, answer);
  }
  place.petrelEarlyCalls = { token, answers };
}

/**
 * Returns the answer of the early call with this path and token, or undefined if there is none. Each answer is returned
 * only once.
 */
export function takeEarlyAnswer(path: string, token: string): Promise<Response> | undefined {
  const { petrelEarlyCalls: early } = place;
  if (early?.token !== token) return undefined;
  const answer = early.answers.get(path);
  early.answers.delete(path);
  return answer;
}
