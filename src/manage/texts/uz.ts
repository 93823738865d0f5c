/** What the management bot says in Uzbek, in Latin letters. */
import type { ManageTexts } from './en.js';

export const uz: ManageTexts = {
  bot_name: 'Petrel',
  bot_description:
    'Bu yerda botlar yaratiladi va boshqariladi: tokenlar, nomlar va tavsiflar, botga kim yoza olishi, boshqa odamga topshirish, oʻchirish. «Boshlash» tugmasini bosing.',
  bot_short_description: 'Botlar yaratadi va ularni boshqarishga yordam beradi.',
  command_newbot: 'bot yaratish',
  command_mybots: 'mening botlarim',
  command_token: 'botning tokenini koʻrsatish',
  command_revoke: 'botga yangi token chiqarish',
  command_setname: 'botning nomini oʻzgartirish',
  command_setdescription: 'botning tavsifini oʻzgartirish',
  command_setabouttext: 'botning qisqa tavsifini oʻzgartirish',
  command_setwriters: 'botga kim yoza olishini tanlash',
  command_transfer: 'botni boshqa odamga topshirish',
  command_deletebot: 'botni oʻchirish',
  command_cancel: 'joriy qadamni bekor qilish',
  command_help: 'bu bot nimalarga qodir',

  start: 'Salom! Men bilan botlar yaratasiz va ularni boshqarasiz.\n\n{commands}',
  help: 'Men quyidagilarni qila olaman:\n\n{commands}',
  unknown: 'Tushunmadim. Nimalar qila olishimni /help koʻrsatadi.',
  cancelled: 'Bekor qilindi. Nimalar qila olishimni /help koʻrsatadi.',
  nothing_to_cancel: 'Bekor qiladigan narsa yoʻq.',
  failed: 'Nimadir xato ketdi. Qayta urinib koʻring.',
  later: 'Xizmat hozir buni bajara olmaydi. Birozdan keyin qayta urinib koʻring.',
  old_button: 'Bu tugma eskirgan. Yangilarini olish uchun /mybots yuboring.',
  not_yours: 'Bu bot sizniki emas.',
  expired: 'Bu savolning muddati oʻtdi. Iltimos, boshidan boshlang.',

  ask_new_name: 'Yangi bot. Uni qanday nomlaymiz? Nomni keyin oʻzgartirish mumkin.',
  ask_new_username:
    'Endi {name} uchun foydalanuvchi nomini tanlang: 3 tadan 32 tagacha lotin harfi, raqam va pastki chiziq, oxiri «bot» bilan tugaydi. Masalan: weather_bot.',
  name_invalid: 'Botni bunday nomlab boʻlmaydi. Boshqa nom yuboring.',
  name_too_long: 'Nom juda uzun: koʻpi bilan 64 ta belgi. Qisqarogʻini yuboring.',
  username_invalid:
    'Bunday foydalanuvchi nomi toʻgʻri kelmaydi: 3 tadan 32 tagacha lotin harfi, raqam va yakka pastki chiziq kerak, harf bilan boshlanib, «bot» bilan tugashi lozim. Boshqasini yuboring.',
  username_taken: '@{username} foydalanuvchi nomi band. Boshqasini yuboring.',
  too_many_bots: 'Sizda bir kishi ega boʻlishi mumkin boʻlgan darajada koʻp bot bor. Avval birini oʻchiring.',
  created:
    'Tayyor! {name} endi @{username}.\n\nBotlar interfeysi uchun tokeni:\n{token}\n\nUni sir saqlang: token kimda boʻlsa, bot oʻshaning qoʻlida. Qolgan hammasi /mybots orqali.',

  list: 'Botlaringizdan birini tanlang:',
  list_empty: 'Sizda hali bot yoʻq. /newbot birinchisini yaratadi.',
  bot_page: '{name}, @{username}\n\nNima qilmoqchisiz?',
  edit_page: '@{username} uchun nimani oʻzgartiramiz?',
  button_token: 'Token',
  button_edit: 'Oʻzgartirish',
  button_transfer: 'Topshirish',
  button_delete: 'Oʻchirish',
  button_back: '« Orqaga',
  button_to_list: '« Barcha botlar',
  button_cancel: 'Bekor qilish',

  token_page: '@{username} botining tokeni. Token kimda boʻlsa, bot oʻshaning qoʻlida.',
  button_show_token: 'Tokenni koʻrsatish',
  button_issue: 'Yangi token chiqarish',
  token_shown: '@{username} botining tokeni:\n{token}',
  token_hidden: '(token koʻrsatilmagan)',
  token_blocked: 'Bu botning tokeni ochiq joyda topilgan va bloklangan. Yangisini chiqaring: /revoke',
  issue_ask:
    '@{username} uchun yangi token chiqaraymi? Hozirgisi ishlatilayotgan hamma joyda darhol ishlamay qoladi.',
  button_issue_yes: 'Ha, yangisini chiqarish',
  issued: '@{username} botining avvalgi tokeni endi ishlamaydi. Yangisi:\n{token}',
  issued_note: '@{username} uchun yangi token chiqarildi.',

  button_name: 'Nomi',
  button_description: 'Tavsifi',
  button_short_description: 'Qisqa tavsifi',
  button_writers: 'Kim yoza oladi',
  choose_language_name: '@{username} nomini qaysi til uchun belgilaymiz?',
  choose_language_description: '@{username} tavsifini qaysi til uchun belgilaymiz?',
  choose_language_short_description: '@{username} qisqa tavsifini qaysi til uchun belgilaymiz?',
  button_default_language: 'Qolgan barcha tillar',
  default_language: 'qolgan barcha tillar',
  ask_name: '@{username} ({language}) uchun yangi nom yuboring, koʻpi bilan 64 ta belgi.\n\nHozir: {current}',
  ask_description:
    '@{username} ({language}) uchun yangi tavsif yuboring, koʻpi bilan 512 ta belgi. U «Boshlash» tugmasi bosilguncha koʻrinadi.\n\nHozir: {current}',
  ask_short_description:
    '@{username} ({language}) uchun yangi qisqa tavsif yuboring, koʻpi bilan 120 ta belgi. U bot sahifasida nomning ostida turadi.\n\nHozir: {current}',
  nothing_set: '—',
  button_remove_text: 'Hozirgi matnni olib tashlash',
  description_too_long: 'Tavsif juda uzun: koʻpi bilan 512 ta belgi. Qisqarogʻini yuboring.',
  short_description_too_long: 'Qisqa tavsif juda uzun: koʻpi bilan 120 ta belgi. Qisqarogʻini yuboring.',
  text_expected: 'Buni oddiy matn bilan yuboring yoki /cancel.',
  text_set: '@{username} ({language}) uchun saqlandi.',
  text_removed: '@{username} ({language}) uchun olib tashlandi.',

  writers_page: 'Shaxsiy chatda @{username} botiga kim yoza oladi?\n\nHozir: {writers}',
  writers_all: 'hamma',
  writers_owner: 'faqat siz',
  writers_selected: 'faqat bu odamlar: {usernames}',
  button_writers_all: 'Hamma',
  button_writers_selected: 'Tanlangan odamlar',
  button_writers_owner: 'Faqat men',
  ask_writers:
    '@{username} botiga yoza oladiganlarning foydalanuvchi nomlarini boʻsh joy yoki yangi qator bilan ajratib yuboring. Ular hozirgi roʻyxat oʻrnini egallaydi; oʻzingiz har doim yoza olasiz.',
  writers_set: 'Saqlandi. Endi @{username} botiga yoza oladi: {writers}',
  writers_unknown: '@{username} foydalanuvchi nomli odamni bilmayman. Butun roʻyxatni qayta yuboring.',

  ask_transfer:
    '@{username} botini kimga topshirmoqchisiz? Yangi egasining foydalanuvchi nomini yuboring. U bot emas, odam boʻlishi kerak.',
  transfer_unknown: 'Bunday foydalanuvchi nomli odamni bilmayman. Boshqasini yuboring yoki /cancel.',
  transfer_self: 'Bu bot shundoq ham sizniki. Boshqa odamning foydalanuvchi nomini yuboring yoki /cancel.',
  transfer_full:
    'Bu odamda bir kishi ega boʻlishi mumkin boʻlgan darajada koʻp bot bor. Boshqa odamni tanlang yoki /cancel.',
  transfer_ask:
    '@{username} botini @{recipient} ga topshiraymi?\n\nBotning tokeni, sozlamalari va statistikasiga kirish huquqini darhol yoʻqotasiz. Hozirgi token ishlamay qoladi, yangi egasi boshqasini oladi. Botning matnlari, chatlari va vebhuki qoladi. Botni faqat yangi egasi qaytarib bera oladi.',
  button_transfer_yes: 'Ha, @{recipient} ga topshirish',
  transferred: '@{username} endi @{recipient} ga tegishli. Sizda unga kirish huquqi qolmadi.',
  transfer_offered: '@{recipient} rozi boʻlishi bilan @{username} unga oʻtadi. Ungacha bot sizniki.',
  button_accept: 'Qabul qilish',
  button_decline: 'Rad etish',
  offer_accepted: '@{username} endi sizniki. Uning yangi tokeni bor: /token',
  offer_declined: 'Siz @{username} botini rad etdingiz.',
  offer_gone: 'Bu taklif endi kuchda emas.',

  delete_ask:
    '@{username} butunlay oʻchirilsinmi? Tokeni darhol ishlamay qoladi, vebhuki olib tashlanadi va botni qaytarib boʻlmaydi.',
  button_delete_yes: 'Ha, botni oʻchirish',
  deleted: '@{username} oʻchirildi.',

  notice_leak_found:
    '@{username} botining tokeni ochiq joyda topildi ({where}) va endi ishlamaydi. Yangisini chiqaring: /revoke',
  notice_user_token_leaked:
    'Sizning «{name}» kirish tokeningiz ochiq joyda topildi ({where}) va endi ishlamaydi.',
  notice_webhook_failing:
    '@{username} botining vebhuki {since} dan beri ishlamayapti. Oxirgi xato: {error}\n\nYangilanishlar 24 soatgacha kutadi.',
  notice_webhook_removed:
    '@{username} botining vebhuki olib tashlandi, chunki uning serveri 23 soat davomida 410 kodi bilan javob berdi. Endi bot yangilanishlarni soʻrov orqali olishi mumkin.',
  notice_transferred_to_you:
    '{from} sizga @{username} botini topshirdi. U /mybots roʻyxatida, tokeni ham yangi.',
  notice_transfer_offered:
    '{from} sizga @{username} botini topshirmoqchi. Qabul qilasizmi? Taklif bir hafta kuchda boʻladi.',
  notice_transfer_accepted: '{to} qabul qildi: @{username} endi unga tegishli, sizda kirish huquqi qolmadi.',
  notice_transfer_declined: '{to} @{username} botini rad etdi. U sizniki boʻlib qoladi.',
  somewhere: 'joyi nomaʼlum',
  somebody: 'Kimdir',
};
