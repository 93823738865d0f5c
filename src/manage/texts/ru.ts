/** Russian texts of the management bot. */
import type { ManageTexts } from './en.js';

export const ru: ManageTexts = {
  bot_name: 'Petrel',
  bot_description:
    'Здесь создают ботов и управляют ими: токены, имена и описания, кто может писать боту, передача другому человеку, удаление. Нажмите «Старт».',
  bot_short_description: 'Создаёт ботов и помогает ими управлять.',
  command_newbot: 'создать бота',
  command_mybots: 'мои боты',
  command_token: 'показать токен бота',
  command_revoke: 'выпустить новый токен бота',
  command_setname: 'изменить имя бота',
  command_setdescription: 'изменить описание бота',
  command_setabouttext: 'изменить краткое описание бота',
  command_setwriters: 'выбрать, кто может писать боту',
  command_transfer: 'передать бота другому человеку',
  command_deletebot: 'удалить бота',
  command_cancel: 'отменить текущий шаг',
  command_help: 'что умеет этот бот',

  start: 'Здравствуйте! С моей помощью вы создаёте ботов и управляете ими.\n\n{commands}',
  help: 'Вот что я умею:\n\n{commands}',
  unknown: 'Не понимаю. /help покажет, что я умею.',
  cancelled: 'Отменено. /help покажет, что я умею.',
  nothing_to_cancel: 'Отменять нечего.',
  failed: 'Что-то пошло не так. Попробуйте ещё раз.',
  later: 'Сейчас сервис не может этого сделать. Попробуйте чуть позже.',
  old_button: 'Эта кнопка устарела. Отправьте /mybots, чтобы получить новые.',
  not_yours: 'Этот бот не ваш.',
  expired: 'Срок этого вопроса истёк. Начните, пожалуйста, сначала.',

  ask_new_name: 'Новый бот. Как его назвать? Имя потом можно изменить.',
  ask_new_username:
    'Теперь выберите имя пользователя для {name}: от 3 до 32 латинских букв, цифр и подчёркиваний, с «bot» на конце. Например: weather_bot.',
  name_invalid: 'Так назвать бота нельзя. Отправьте другое имя.',
  name_too_long: 'Слишком длинное имя: не больше 64 символов. Отправьте покороче.',
  username_invalid:
    'Такое имя пользователя не подходит: нужно от 3 до 32 латинских букв, цифр и одиночных подчёркиваний, в начале буква, в конце «bot». Отправьте другое.',
  username_taken: 'Имя пользователя @{username} занято. Отправьте другое.',
  too_many_bots:
    'У вас уже столько ботов, сколько может быть у одного человека. Сначала удалите одного из них.',
  created:
    'Готово! {name} теперь @{username}.\n\nТокен для интерфейса ботов:\n{token}\n\nДержите его в тайне: у кого токен, тот и управляет ботом. Всё остальное — в /mybots.',

  list: 'Выберите одного из своих ботов:',
  list_empty: 'У вас пока нет ботов. /newbot создаст первого.',
  bot_page: '{name}, @{username}\n\nЧто вы хотите сделать?',
  edit_page: 'Что изменить у @{username}?',
  button_token: 'Токен',
  button_edit: 'Изменить',
  button_transfer: 'Передать',
  button_delete: 'Удалить',
  button_back: '« Назад',
  button_to_list: '« Все боты',
  button_cancel: 'Отмена',

  token_page: 'Токен бота @{username}. У кого токен, тот и управляет ботом.',
  button_show_token: 'Показать токен',
  button_issue: 'Выпустить новый токен',
  token_shown: 'Токен бота @{username}:\n{token}',
  token_hidden: '(токен не показан)',
  token_blocked: 'Токен этого бота найден в открытом доступе и заблокирован. Выпустите новый: /revoke',
  issue_ask:
    'Выпустить новый токен для @{username}? Нынешний сразу перестанет работать везде, где он используется.',
  button_issue_yes: 'Да, выпустить новый',
  issued: 'Прежний токен бота @{username} больше не работает. Новый:\n{token}',
  issued_note: 'Для @{username} выпущен новый токен.',

  button_name: 'Имя',
  button_description: 'Описание',
  button_short_description: 'Краткое описание',
  button_writers: 'Кто может писать',
  choose_language_name: 'Для какого языка задать имя @{username}?',
  choose_language_description: 'Для какого языка задать описание @{username}?',
  choose_language_short_description: 'Для какого языка задать краткое описание @{username}?',
  button_default_language: 'Все остальные языки',
  default_language: 'все остальные языки',
  ask_name: 'Отправьте новое имя @{username} ({language}), не больше 64 символов.\n\nСейчас: {current}',
  ask_description:
    'Отправьте новое описание @{username} ({language}), не больше 512 символов. Его видят до нажатия кнопки «Старт».\n\nСейчас: {current}',
  ask_short_description:
    'Отправьте новое краткое описание @{username} ({language}), не больше 120 символов. Оно стоит под именем на странице бота.\n\nСейчас: {current}',
  nothing_set: '—',
  button_remove_text: 'Убрать нынешний текст',
  description_too_long: 'Слишком длинное описание: не больше 512 символов. Отправьте покороче.',
  short_description_too_long: 'Слишком длинное краткое описание: не больше 120 символов. Отправьте покороче.',
  text_expected: 'Отправьте это обычным текстом или нажмите /cancel.',
  text_set: 'Сохранено для @{username} ({language}).',
  text_removed: 'Убрано у @{username} ({language}).',

  writers_page: 'Кто может писать @{username} в личном чате?\n\nСейчас: {writers}',
  writers_all: 'все',
  writers_owner: 'только вы',
  writers_selected: 'только эти люди: {usernames}',
  button_writers_all: 'Все',
  button_writers_selected: 'Выбранные люди',
  button_writers_owner: 'Только я',
  ask_writers:
    'Отправьте имена пользователей тех, кто может писать @{username}, через пробел или каждое с новой строки. Они заменят нынешний список; сами вы можете писать всегда.',
  writers_set: 'Сохранено. Теперь @{username} могут писать: {writers}',
  writers_unknown: 'Человека с именем пользователя @{username} я не знаю. Отправьте весь список ещё раз.',

  ask_transfer:
    'Кому вы хотите передать @{username}? Отправьте имя пользователя нового владельца. Это должен быть человек, а не бот.',
  transfer_unknown: 'Человека с таким именем пользователя я не знаю. Отправьте другое или нажмите /cancel.',
  transfer_self: 'Этот бот и так ваш. Отправьте имя пользователя другого человека или нажмите /cancel.',
  transfer_full:
    'У этого человека уже столько ботов, сколько может быть у одного. Выберите другого или нажмите /cancel.',
  transfer_ask:
    'Передать @{username} пользователю @{recipient}?\n\nВы сразу потеряете доступ к токену, настройкам и статистике бота. Нынешний токен перестанет работать, новый владелец получит другой. Тексты, чаты и вебхук бота останутся. Вернуть бота сможет только новый владелец.',
  button_transfer_yes: 'Да, передать @{recipient}',
  transferred: '@{username} теперь принадлежит @{recipient}. У вас больше нет к нему доступа.',
  transfer_offered:
    '@{username} перейдёт к @{recipient}, как только этот пользователь согласится. До тех пор бот ваш.',
  button_accept: 'Принять',
  button_decline: 'Отказаться',
  offer_accepted: '@{username} теперь ваш. У него новый токен: /token',
  offer_declined: 'Вы отказались от @{username}.',
  offer_gone: 'Это предложение больше не действует.',

  delete_ask:
    'Удалить @{username} навсегда? Токен сразу перестанет работать, вебхук будет снят, и вернуть бота будет нельзя.',
  button_delete_yes: 'Да, удалить бота',
  deleted: 'Бот @{username} удалён.',

  notice_leak_found:
    'Токен бота @{username} найден в открытом доступе ({where}) и больше не работает. Выпустите новый: /revoke',
  notice_user_token_leaked:
    'Ваш токен доступа «{name}» найден в открытом доступе ({where}) и больше не работает.',
  notice_webhook_failing:
    'Вебхук бота @{username} не работает с {since}. Последняя ошибка: {error}\n\nОбновления ждут до 24 часов.',
  notice_webhook_removed:
    'Вебхук бота @{username} снят, потому что его получатель 23 часа отвечал кодом 410. Теперь бот может получать обновления опросом.',
  notice_transferred_to_you: '{from} передаёт вам бота @{username}. Он уже в /mybots, и у него новый токен.',
  notice_transfer_offered:
    '{from} хочет передать вам бота @{username}. Принимаете? Предложение действует неделю.',
  notice_transfer_accepted:
    '{to} принимает бота: @{username} теперь принадлежит этому пользователю, и у вас больше нет доступа.',
  notice_transfer_declined: '{to} не принимает бота @{username}. Он остаётся вашим.',
  somewhere: 'место неизвестно',
  somebody: 'Кто-то',
};
