/** Armenian texts of the management bot. */
import type { ManageTexts } from './en.js';

export const hy: ManageTexts = {
  bot_name: 'Petrel',
  bot_description:
    'Այստեղ ստեղծում և կառավարում են բոտեր՝ տոկեններ, անուններ և նկարագրություններ, ով կարող է գրել բոտին, փոխանցում ուրիշին, ջնջում։ Սեղմեք «Սկսել»։',
  bot_short_description: 'Ստեղծում է բոտեր և օգնում կառավարել դրանք։',
  command_newbot: 'ստեղծել բոտ',
  command_mybots: 'իմ բոտերը',
  command_token: 'ցույց տալ բոտի տոկենը',
  command_revoke: 'տալ բոտին նոր տոկեն',
  command_setname: 'փոխել բոտի անունը',
  command_setdescription: 'փոխել բոտի նկարագրությունը',
  command_setabouttext: 'փոխել բոտի կարճ նկարագրությունը',
  command_setwriters: 'ընտրել, թե ով կարող է գրել բոտին',
  command_transfer: 'փոխանցել բոտը ուրիշին',
  command_deletebot: 'ջնջել բոտը',
  command_cancel: 'չեղարկել ընթացիկ քայլը',
  command_help: 'ինչ կարող է անել այս բոտը',

  start: 'Բարև ձեզ։ Իմ օգնությամբ դուք ստեղծում և կառավարում եք բոտեր։\n\n{commands}',
  help: 'Ահա թե ինչ կարող եմ անել․\n\n{commands}',
  unknown: 'Չհասկացա։ /help ցույց կտա, թե ինչ կարող եմ անել։',
  cancelled: 'Չեղարկված է։ /help ցույց կտա, թե ինչ կարող եմ անել։',
  nothing_to_cancel: 'Չեղարկելու բան չկա։',
  failed: 'Ինչ-որ բան սխալ գնաց։ Փորձեք նորից։',
  later: 'Ծառայությունը հիմա չի կարող դա անել։ Փորձեք մի փոքր ուշ։',
  old_button: 'Այս կոճակը հնացել է։ Նորերի համար ուղարկեք /mybots։',
  not_yours: 'Այս բոտը ձերը չէ։',
  expired: 'Այս հարցի ժամկետը լրացել է։ Խնդրում ենք սկսել նորից։',

  ask_new_name: 'Նոր բոտ։ Ինչպե՞ս անվանենք այն։ Անունը հետո կարելի է փոխել։',
  ask_new_username:
    'Այժմ ընտրեք օգտանուն {name} բոտի համար՝ 3-ից 32 լատինական տառ, թվանշան և ընդգծման նշան, վերջում՝ «bot»։ Օրինակ՝ weather_bot։',
  name_invalid: 'Բոտն այդպես անվանել չի կարելի։ Ուղարկեք ուրիշ անուն։',
  name_too_long: 'Անունը շատ երկար է՝ առավելագույնը 64 նիշ։ Ուղարկեք ավելի կարճը։',
  username_invalid:
    'Այդպիսի օգտանունը հարմար չէ․ պետք է 3-ից 32 լատինական տառ, թվանշան և եզակի ընդգծման նշան, սկզբում՝ տառ, վերջում՝ «bot»։ Ուղարկեք ուրիշը։',
  username_taken: '@{username} օգտանունը զբաղված է։ Ուղարկեք ուրիշը։',
  too_many_bots: 'Դուք արդեն ունեք այնքան բոտ, որքան կարող է ունենալ մեկ մարդ։ Նախ ջնջեք դրանցից մեկը։',
  created:
    'Պատրաստ է։ {name} բոտն այժմ @{username} է։\n\nՆրա տոկենը բոտերի ինտերֆեյսի համար՝\n{token}\n\nԳաղտնի պահեք այն․ ում մոտ տոկենն է, նա էլ կառավարում է բոտը։ Մնացած ամեն ինչը՝ /mybots։',

  list: 'Ընտրեք ձեր բոտերից մեկը․',
  list_empty: 'Դուք դեռ բոտ չունեք։ /newbot կստեղծի առաջինը։',
  bot_page: '{name}, @{username}\n\nԻ՞նչ եք ուզում անել։',
  edit_page: 'Ի՞նչ փոխել @{username} բոտի մեջ։',
  button_token: 'Տոկեն',
  button_edit: 'Փոխել',
  button_transfer: 'Փոխանցել',
  button_delete: 'Ջնջել',
  button_back: '« Հետ',
  button_to_list: '« Բոլոր բոտերը',
  button_cancel: 'Չեղարկել',

  token_page: '@{username} բոտի տոկենը։ Ում մոտ տոկենն է, նա էլ կառավարում է բոտը։',
  button_show_token: 'Ցույց տալ տոկենը',
  button_issue: 'Տալ նոր տոկեն',
  token_shown: '@{username} բոտի տոկենը՝\n{token}',
  token_hidden: '(տոկենը ցույց չի տրվում)',
  token_blocked: 'Այս բոտի տոկենը հայտնաբերվել է հանրային տեղում և արգելափակված է։ Տվեք նորը՝ /revoke',
  issue_ask:
    'Տա՞լ նոր տոկեն @{username} բոտին։ Ներկայիս տոկենն անմիջապես կդադարի աշխատել ամենուր, որտեղ այն օգտագործվում է։',
  button_issue_yes: 'Այո, տալ նորը',
  issued: '@{username} բոտի նախորդ տոկենն այլևս չի աշխատում։ Նորը՝\n{token}',
  issued_note: '@{username} բոտին տրվել է նոր տոկեն։',

  button_name: 'Անունը',
  button_description: 'Նկարագրությունը',
  button_short_description: 'Կարճ նկարագրությունը',
  button_writers: 'Ով կարող է գրել',
  choose_language_name: 'Ո՞ր լեզվի համար սահմանել @{username} բոտի անունը։',
  choose_language_description: 'Ո՞ր լեզվի համար սահմանել @{username} բոտի նկարագրությունը։',
  choose_language_short_description: 'Ո՞ր լեզվի համար սահմանել @{username} բոտի կարճ նկարագրությունը։',
  button_default_language: 'Մնացած բոլոր լեզուները',
  default_language: 'մնացած բոլոր լեզուները',
  ask_name: 'Ուղարկեք @{username} բոտի նոր անունը ({language})՝ առավելագույնը 64 նիշ։\n\nՀիմա՝ {current}',
  ask_description:
    'Ուղարկեք @{username} բոտի նոր նկարագրությունը ({language})՝ առավելագույնը 512 նիշ։ Այն երևում է մինչև «Սկսել» կոճակը սեղմելը։\n\nՀիմա՝ {current}',
  ask_short_description:
    'Ուղարկեք @{username} բոտի նոր կարճ նկարագրությունը ({language})՝ առավելագույնը 120 նիշ։ Այն անվան տակ է՝ բոտի էջում։\n\nՀիմա՝ {current}',
  nothing_set: '—',
  button_remove_text: 'Հանել ներկայիս տեքստը',
  description_too_long: 'Նկարագրությունը շատ երկար է՝ առավելագույնը 512 նիշ։ Ուղարկեք ավելի կարճը։',
  short_description_too_long:
    'Կարճ նկարագրությունը շատ երկար է՝ առավելագույնը 120 նիշ։ Ուղարկեք ավելի կարճը։',
  text_expected: 'Ուղարկեք դա սովորական տեքստով կամ /cancel։',
  text_set: 'Պահպանված է @{username} բոտի համար ({language})։',
  text_removed: 'Հանված է @{username} բոտից ({language})։',

  writers_page: 'Ո՞վ կարող է գրել @{username} բոտին անձնական զրույցում։\n\nՀիմա՝ {writers}',
  writers_all: 'բոլորը',
  writers_owner: 'միայն դուք',
  writers_selected: 'միայն այս մարդիկ՝ {usernames}',
  button_writers_all: 'Բոլորը',
  button_writers_selected: 'Ընտրված մարդիկ',
  button_writers_owner: 'Միայն ես',
  ask_writers:
    'Ուղարկեք նրանց օգտանունները, ովքեր կարող են գրել @{username} բոտին՝ բացատով կամ նոր տողով բաժանված։ Դրանք կփոխարինեն ներկայիս ցուցակը․ դուք ինքներդ միշտ կարող եք գրել։',
  writers_set: 'Պահպանված է։ Այժմ @{username} բոտին կարող են գրել՝ {writers}',
  writers_unknown: '@{username} օգտանունով մարդ չեմ ճանաչում։ Ուղարկեք ամբողջ ցուցակը նորից։',

  ask_transfer:
    'Ո՞ւմ եք ուզում փոխանցել @{username} բոտը։ Ուղարկեք նոր տիրոջ օգտանունը։ Դա պետք է լինի մարդ, ոչ թե բոտ։',
  transfer_unknown: 'Այդպիսի օգտանունով մարդ չեմ ճանաչում։ Ուղարկեք ուրիշը կամ /cancel։',
  transfer_self: 'Այս բոտն առանց այն էլ ձերն է։ Ուղարկեք ուրիշ մարդու օգտանունը կամ /cancel։',
  transfer_full:
    'Այս մարդն արդեն ունի այնքան բոտ, որքան կարող է ունենալ մեկ մարդ։ Ընտրեք ուրիշին կամ /cancel։',
  transfer_ask:
    'Փոխանցե՞լ @{username} բոտը @{recipient} օգտատիրոջը։\n\nԴուք անմիջապես կկորցնեք մուտքը բոտի տոկենին, կարգավորումներին և վիճակագրությանը։ Ներկայիս տոկենը կդադարի աշխատել, նոր տերը կստանա ուրիշ տոկեն։ Բոտի տեքստերը, զրույցները և վեբհուկը կմնան։ Բոտը կարող է վերադարձնել միայն նոր տերը։',
  button_transfer_yes: 'Այո, փոխանցել @{recipient}',
  transferred: '@{username} բոտն այժմ պատկանում է @{recipient} օգտատիրոջը։ Դուք այլևս մուտք չունեք։',
  transfer_offered:
    '@{username} բոտը կանցնի @{recipient} օգտատիրոջը, հենց որ նա համաձայնի։ Մինչ այդ այն ձերն է։',
  button_accept: 'Ընդունել',
  button_decline: 'Մերժել',
  offer_accepted: '@{username} բոտն այժմ ձերն է։ Այն ունի նոր տոկեն՝ /token',
  offer_declined: 'Դուք մերժեցիք @{username} բոտը։',
  offer_gone: 'Այս առաջարկն այլևս ուժի մեջ չէ։',

  delete_ask:
    'Ընդմի՞շտ ջնջել @{username} բոտը։ Տոկենն անմիջապես կդադարի աշխատել, վեբհուկը կհանվի, և բոտը հնարավոր չի լինի վերադարձնել։',
  button_delete_yes: 'Այո, ջնջել բոտը',
  deleted: '@{username} բոտը ջնջված է։',

  notice_leak_found:
    '@{username} բոտի տոկենը հայտնաբերվել է հանրային տեղում ({where}) և այլևս չի աշխատում։ Տվեք նորը՝ /revoke',
  notice_user_token_leaked:
    'Ձեր «{name}» մուտքի տոկենը հայտնաբերվել է հանրային տեղում ({where}) և այլևս չի աշխատում։',
  notice_webhook_failing:
    '@{username} բոտի վեբհուկը չի աշխատում {since}-ից սկսած։ Վերջին սխալը՝ {error}\n\nԹարմացումները սպասում են մինչև 24 ժամ։',
  notice_webhook_removed:
    '@{username} բոտի վեբհուկը հանված է, որովհետև նրա սերվերը 23 ժամ պատասխանել է 410 կոդով։ Այժմ բոտը կարող է թարմացումները ստանալ հարցումներով։',
  notice_transferred_to_you:
    '{from} ձեզ է փոխանցել @{username} բոտը։ Այն /mybots ցուցակում է և ունի նոր տոկեն։',
  notice_transfer_offered:
    '{from} ուզում է ձեզ փոխանցել @{username} բոտը։ Ընդունո՞ւմ եք։ Առաջարկն ուժի մեջ է մեկ շաբաթ։',
  notice_transfer_accepted: '{to} ընդունեց․ @{username} բոտն այժմ նրանն է, և դուք այլևս մուտք չունեք։',
  notice_transfer_declined: '{to} մերժեց @{username} բոտը։ Այն մնում է ձերը։',
  somewhere: 'տեղն անհայտ է',
  somebody: 'Ինչ-որ մեկը',
};
