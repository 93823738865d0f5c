/** Lists the top-level domains. A name that ends in one of them counts as a web address even without a scheme. */

const generic =
  'com net org edu gov mil int info biz name pro aero coop museum jobs mobi tel travel asia cat post xxx ' +
  'app dev page web cloud online site website space store shop blog news media live life world today club ' +
  'tech digital software systems network email link click chat social team group company agency studio ' +
  'design art music video games game fun bank finance money market trade academy school university ' +
  'support help wiki guide tools works services solutions center city global top xyz one icu vip eco bio';
const countries =
  'ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by bz ' +
  'ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk ' +
  'fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir ' +
  'is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ' +
  'ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl ' +
  'pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc ' +
  'td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw';
const international =
  'рф рус москва дети онлайн сайт орг ком бел укр мкд срб бг ею қаз հայ გე 中国 中國 香港 台灣 한국';

const known: ReadonlySet<string> = new Set(`${generic} ${countries} ${international}`.split(' '));

/**
 * Returns whether people write addresses in this top-level domain without `http://`. Returns false for file extensions,
 * such as `ts` in `main.ts`.
 */
export function isTopLevelDomain(label: string): boolean {
  const lower = label.toLowerCase();
  return known.has(lower) || lower.startsWith('xn--');
}
