/**
 * Reads the title and the descriptions in the head of an HTML page. Uses only the parser library's tokenizer, which
 * takes linear time on any input. Building the tree of a malicious page could take quadratic time.
 */
import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2';

export interface HeadFields {
  readonly title?: string;
  readonly charset?: string;
  /** The value of `<meta http-equiv="content-type">`. */
  readonly contentType?: string;
  /** The `content` of each known `<meta>`, by its `property` or `name` in lower case. */
  readonly meta: ReadonlyMap<string, string>;
}

const known: ReadonlySet<string> = new Set([
  'og:title',
  'og:description',
  'og:site_name',
  'twitter:title',
  'twitter:description',
  'description',
]);

/** How many characters of one text are read. Texts are shortened later, after their white space is collapsed. */
const text_length_max = 4_096;

/** The attributes that are read. Others are skipped. */
const attributeNames: ReadonlySet<string> = new Set(['property', 'name', 'content', 'charset', 'http-equiv']);

/** Collects the fields of a page's head while the tokenizer runs. If a field is repeated, its first value is used. */
class HeadReader implements TokenizerCallbacks {
  readonly #html: string;
  readonly #tokenizer: Tokenizer;
  readonly #meta = new Map<string, string>();
  #title: string | undefined;
  #charset: string | undefined;
  #contentType: string | undefined;
  #tag = '';
  #inTitle = false;
  #attribute = '';
  #value = '';
  #attributes: Record<string, string> = {};

  constructor(html: string) {
    this.#html = html;
    this.#tokenizer = new Tokenizer({ decodeEntities: true }, this);
  }

  read(): HeadFields {
    this.#tokenizer.write(this.#html);
    return {
      meta: this.#meta,
      ...(this.#title !== undefined && { title: this.#title }),
      ...(this.#charset !== undefined && { charset: this.#charset }),
      ...(this.#contentType !== undefined && { contentType: this.#contentType }),
    };
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#slice(start, end).toLowerCase();
    this.#attributes = {};
    if (this.#tag === 'body') this.#tokenizer.pause();
    if (this.#tag !== 'title' || this.#title !== undefined) return;
    this.#inTitle = true;
    this.#title = '';
  }

  onattribname(start: number, end: number): void {
    const name = this.#tag === 'meta' ? this.#slice(start, end).toLowerCase() : '';
    this.#attribute = attributeNames.has(name) && !Object.hasOwn(this.#attributes, name) ? name : '';
    this.#value = '';
  }

  onattribdata(start: number, end: number): void {
    if (this.#attribute !== '') this.#value = this.#longer(this.#value, this.#slice(start, end));
  }

  onattribentity(codePoint: number): void {
    if (this.#attribute !== '') this.#value = this.#longer(this.#value, String.fromCodePoint(codePoint));
  }

  onattribend(): void {
    if (this.#attribute !== '') this.#attributes[this.#attribute] = this.#value;
  }

  onopentagend(): void {
    if (this.#tag !== 'meta') return;
    const { property, name, content, charset, 'http-equiv': equivalent = '' } = this.#attributes;
    if (charset !== undefined) this.#charset ??= charset.trim();
    if (content === undefined) return;
    if (equivalent.toLowerCase() === 'content-type') this.#contentType ??= content;
    const key = (property ?? name ?? '').trim().toLowerCase();
    if (known.has(key) && !this.#meta.has(key)) this.#meta.set(key, content);
  }

  onselfclosingtag(): void {
    this.onopentagend();
  }

  ontext(start: number, end: number): void {
    if (this.#inTitle) this.#title = this.#longer(this.#title ?? '', this.#slice(start, end));
  }

  ontextentity(codePoint: number): void {
    if (this.#inTitle) this.#title = this.#longer(this.#title ?? '', String.fromCodePoint(codePoint));
  }

  onclosetag(start: number, end: number): void {
    const tag = this.#slice(start, end).toLowerCase();
    if (tag === 'title') this.#inTitle = false;
    if (tag === 'head') this.#tokenizer.pause();
  }

  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onprocessinginstruction(): void {}

  /**
   * Returns a part of the page, up to a maximum length. Without this maximum, a very long name in the page would be
   * copied many times.
   */
  #slice(start: number, end: number): string {
    return this.#html.slice(start, Math.min(end, start + text_length_max));
  }

  #longer(text: string, more: string): string {
    return text.length >= text_length_max ? text : (text + more).slice(0, text_length_max);
  }
}

export const readHead = (html: string): HeadFields => new HeadReader(html).read();
