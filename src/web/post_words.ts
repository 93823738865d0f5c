/** The texts of the pages of posts, in the languages of the application. */
import { type Language, languages } from '../rules/identity_texts.js';

interface PostWords {
  readonly missing: string;
  readonly missing_hint: string;
  readonly open: string;
  readonly reactions: string;
  readonly refused: string;
  readonly refused_hint: string;
  readonly sign_in: string;
}

export const postWords: Readonly<Record<Language, PostWords>> = {
  en: {
    missing: 'Post not found',
    missing_hint: 'This post does not exist, or you have to sign in to read it.',
    open: 'Open in the application',
    reactions: 'Reactions',
    refused: 'Please try again',
    refused_hint: 'The page cannot be shown at the moment. Please try again in a little while.',
    sign_in: 'Sign in',
  },
  ru: {
    missing: 'Публикация не найдена',
    missing_hint: 'Такой публикации нет, или нужно войти, чтобы её прочитать.',
    open: 'Открыть в приложении',
    reactions: 'Реакции',
    refused: 'Попробуйте ещё раз',
    refused_hint: 'Сейчас страницу показать нельзя. Попробуйте ещё раз чуть позже.',
    sign_in: 'Войти',
  },
  uz: {
    missing: 'Eʼlon topilmadi',
    missing_hint: 'Bunday eʼlon yoʻq yoki uni oʻqish uchun kirish kerak.',
    open: 'Ilovada ochish',
    reactions: 'Reaksiyalar',
    refused: 'Qayta urinib koʻring',
    refused_hint: 'Hozir sahifani koʻrsatib boʻlmaydi. Birozdan keyin qayta urinib koʻring.',
    sign_in: 'Kirish',
  },
  tg: {
    missing: 'Нашрия ёфт нашуд',
    missing_hint: 'Чунин нашрия нест ё барои хондани он бояд ворид шавед.',
    open: 'Дар барнома кушодан',
    reactions: 'Вокунишҳо',
    refused: 'Аз нав кӯшиш кунед',
    refused_hint: 'Ҳоло саҳифаро нишон додан мумкин нест. Каме дертар аз нав кӯшиш кунед.',
    sign_in: 'Ворид шудан',
  },
  hy: {
    missing: 'Հրապարակումը չի գտնվել',
    missing_hint: 'Այդպիսի հրապարակում չկա, կամ այն կարդալու համար պետք է մուտք գործել։',
    open: 'Բացել հավելվածում',
    reactions: 'Արձագանքներ',
    refused: 'Փորձեք կրկին',
    refused_hint: 'Հիմա էջը հնարավոր չէ ցույց տալ։ Փորձեք կրկին մի փոքր ուշ։',
    sign_in: 'Մուտք',
  },
  tt: {
    missing: 'Язма табылмады',
    missing_hint: 'Мондый язма юк яки аны уку өчен керергә кирәк.',
    open: 'Кушымтада ачу',
    reactions: 'Реакцияләр',
    refused: 'Яңадан тырышып карагыз',
    refused_hint: 'Хәзер битне күрсәтеп булмый. Бераздан яңадан тырышып карагыз.',
    sign_in: 'Керү',
  },
  kk: {
    missing: 'Жазба табылмады',
    missing_hint: 'Мұндай жазба жоқ немесе оны оқу үшін кіру керек.',
    open: 'Қолданбада ашу',
    reactions: 'Реакциялар',
    refused: 'Қайталап көріңіз',
    refused_hint: 'Қазір бетті көрсету мүмкін емес. Сәл кейінірек қайталап көріңіз.',
    sign_in: 'Кіру',
  },
};

const accepted_length_max = 200;

/** Returns the first supported language in an Accept-Language header, or English if there is none. */
export function chosenLanguage(accepted: string): Language {
  for (const part of accepted.slice(0, accepted_length_max).toLowerCase().split(',')) {
    const [code = '', weight = ''] = part.split(';');
    const primary = code.trim().split('-')[0];
    const found = languages.find((language) => language === primary);
    if (found !== undefined && !/^\s*q=0(?:\.0*)?\s*$/.test(weight)) return found;
  }
  return 'en';
}
