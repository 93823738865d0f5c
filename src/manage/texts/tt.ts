/** Tatar texts of the management bot. */
import type { ManageTexts } from './en.js';

export const tt: ManageTexts = {
  bot_name: 'Petrel',
  bot_description:
    'Монда ботлар ясыйлар һәм алар белән идарә итәләр: токеннар, исемнәр һәм тасвирламалар, ботка кем яза ала, башка кешегә тапшыру, бетерү. «Башлау» төймәсенә басыгыз.',
  bot_short_description: 'Ботлар ясый һәм алар белән идарә итәргә ярдәм итә.',
  command_newbot: 'бот ясау',
  command_mybots: 'минем ботларым',
  command_token: 'ботның токенын күрсәтү',
  command_revoke: 'ботка яңа токен чыгару',
  command_setname: 'ботның исемен үзгәртү',
  command_setdescription: 'ботның тасвирламасын үзгәртү',
  command_setabouttext: 'ботның кыска тасвирламасын үзгәртү',
  command_setwriters: 'ботка кем яза алуын сайлау',
  command_transfer: 'ботны башка кешегә тапшыру',
  command_deletebot: 'ботны бетерү',
  command_cancel: 'агымдагы адымнан баш тарту',
  command_help: 'бу бот нәрсә эшли ала',

  start: 'Исәнмесез! Минем белән сез ботлар ясыйсыз һәм алар белән идарә итәсез.\n\n{commands}',
  help: 'Мин менә нәрсәләр эшли алам:\n\n{commands}',
  unknown: 'Аңламадым. Нәрсә эшли алуымны /help күрсәтә.',
  cancelled: 'Баш тартылды. Нәрсә эшли алуымны /help күрсәтә.',
  nothing_to_cancel: 'Баш тартырлык нәрсә юк.',
  failed: 'Нәрсәдер килеп чыкмады. Тагын бер кат карагыз.',
  later: 'Хезмәт хәзер моны эшли алмый. Бераздан тагын карагыз.',
  old_button: 'Бу төймә искергән. Яңаларын алу өчен /mybots җибәрегез.',
  not_yours: 'Бу бот сезнеке түгел.',
  expired: 'Бу сорауның вакыты узды. Зинһар, яңадан башлагыз.',

  ask_new_name: 'Яңа бот. Аны ничек атыйбыз? Исемне соңрак үзгәртеп була.',
  ask_new_username:
    'Хәзер {name} өчен кулланучы исемен сайлагыз: 3тән 32гә кадәр латин хәрефе, сан һәм аскы сызык, ахыры «bot» булсын. Мәсәлән: weather_bot.',
  name_invalid: 'Ботны болай атап булмый. Башка исем җибәрегез.',
  name_too_long: 'Исем артык озын: күп дигәндә 64 билге. Кыскарагын җибәрегез.',
  username_invalid:
    'Мондый кулланучы исеме ярамый: 3тән 32гә кадәр латин хәрефе, сан һәм ялгыз аскы сызык кирәк, башында хәреф, ахырында «bot». Башкасын җибәрегез.',
  username_taken: '@{username} кулланучы исеме алынган. Башкасын җибәрегез.',
  too_many_bots: 'Сездә бер кешегә рөхсәт ителгән кадәр бот бар инде. Башта берсен бетерегез.',
  created:
    'Әзер! {name} хәзер @{username}.\n\nБотлар интерфейсы өчен токены:\n{token}\n\nАны сер итеп саклагыз: токен кемдә булса, бот белән шул идарә итә. Калганнары — /mybots.',

  list: 'Ботларыгызның берсен сайлагыз:',
  list_empty: 'Сезнең әле ботларыгыз юк. /newbot беренчесен ясый.',
  bot_page: '{name}, @{username}\n\nНәрсә эшләргә телисез?',
  edit_page: '@{username} өчен нәрсәне үзгәртәбез?',
  button_token: 'Токен',
  button_edit: 'Үзгәртү',
  button_transfer: 'Тапшыру',
  button_delete: 'Бетерү',
  button_back: '« Кире',
  button_to_list: '« Барлык ботлар',
  button_cancel: 'Баш тарту',

  token_page: '@{username} токены. Токен кемдә булса, бот белән шул идарә итә.',
  button_show_token: 'Токенны күрсәтү',
  button_issue: 'Яңа токен чыгару',
  token_shown: '@{username} токены:\n{token}',
  token_hidden: '(токен күрсәтелми)',
  token_blocked: 'Бу ботның токены ачык урында табылган һәм бикләнгән. Яңасын чыгарыгыз: /revoke',
  issue_ask:
    '@{username} өчен яңа токен чыгарыргамы? Хәзергесе кулланылган һәр урында шунда ук эшләүдән туктаячак.',
  button_issue_yes: 'Әйе, яңасын чыгарырга',
  issued: '@{username} ботының элекке токены инде эшләми. Яңасы:\n{token}',
  issued_note: '@{username} өчен яңа токен чыгарылды.',

  button_name: 'Исем',
  button_description: 'Тасвирлама',
  button_short_description: 'Кыска тасвирлама',
  button_writers: 'Кем яза ала',
  choose_language_name: '@{username} исемен кайсы тел өчен куярга?',
  choose_language_description: '@{username} тасвирламасын кайсы тел өчен куярга?',
  choose_language_short_description: '@{username} кыска тасвирламасын кайсы тел өчен куярга?',
  button_default_language: 'Калган барлык телләр',
  default_language: 'калган барлык телләр',
  ask_name: '@{username} өчен яңа исем җибәрегез ({language}), күп дигәндә 64 билге.\n\nХәзер: {current}',
  ask_description:
    '@{username} өчен яңа тасвирлама җибәрегез ({language}), күп дигәндә 512 билге. Ул «Башлау» төймәсенә басканчы күренә.\n\nХәзер: {current}',
  ask_short_description:
    '@{username} өчен яңа кыска тасвирлама җибәрегез ({language}), күп дигәндә 120 билге. Ул бот битендә исем астында тора.\n\nХәзер: {current}',
  nothing_set: '—',
  button_remove_text: 'Хәзерге текстны алып ташлау',
  description_too_long: 'Тасвирлама артык озын: күп дигәндә 512 билге. Кыскарагын җибәрегез.',
  short_description_too_long: 'Кыска тасвирлама артык озын: күп дигәндә 120 билге. Кыскарагын җибәрегез.',
  text_expected: 'Моны гади текст белән җибәрегез яки /cancel.',
  text_set: '@{username} өчен сакланды ({language}).',
  text_removed: '@{username} өчен алып ташланды ({language}).',

  writers_page: 'Шәхси чатта @{username} ботына кем яза ала?\n\nХәзер: {writers}',
  writers_all: 'һәркем',
  writers_owner: 'сез генә',
  writers_selected: 'бу кешеләр генә: {usernames}',
  button_writers_all: 'Һәркем',
  button_writers_selected: 'Сайланган кешеләр',
  button_writers_owner: 'Мин генә',
  ask_writers:
    '@{username} ботына яза алучыларның кулланучы исемнәрен буш ара яки яңа юл белән аерып җибәрегез. Алар хәзерге исемлекне алыштыра; үзегез һәрвакыт яза аласыз.',
  writers_set: 'Сакланды. Хәзер @{username} ботына яза алалар: {writers}',
  writers_unknown: '@{username} исемле кулланучыны белмим. Бөтен исемлекне яңадан җибәрегез.',

  ask_transfer:
    '@{username} ботын кемгә тапшырырга телисез? Яңа хуҗаның кулланучы исемен җибәрегез. Ул бот түгел, кеше булырга тиеш.',
  transfer_unknown: 'Мондый исемле кулланучыны белмим. Башкасын җибәрегез яки /cancel.',
  transfer_self: 'Бу бот болай да сезнеке. Башка кешенең кулланучы исемен җибәрегез яки /cancel.',
  transfer_full: 'Бу кешедә бер кешегә рөхсәт ителгән кадәр бот бар инде. Башка кешене сайлагыз яки /cancel.',
  transfer_ask:
    '@{username} ботын @{recipient} кулланучысына тапшырыргамы?\n\nБотның токенына, көйләүләренә һәм статистикасына керү хокукын шунда ук югалтасыз. Хәзерге токен эшләүдән туктый, яңа хуҗа башкасын ала. Ботның текстлары, чатлары һәм вебхугы кала. Ботны бары тик яңа хуҗа гына кайтара ала.',
  button_transfer_yes: 'Әйе, @{recipient} кулланучысына тапшырырга',
  transferred: '@{username} хәзер @{recipient} кулланучысыныкы. Сезнең аңа керү хокукыгыз калмады.',
  transfer_offered: '@{recipient} ризалашу белән @{username} аңа күчә. Аңа кадәр бот сезнеке.',
  button_accept: 'Кабул итү',
  button_decline: 'Кире кагу',
  offer_accepted: '@{username} хәзер сезнеке. Аның яңа токены бар: /token',
  offer_declined: 'Сез @{username} ботыннан баш тарттыгыз.',
  offer_gone: 'Бу тәкъдим инде гамәлдә түгел.',

  delete_ask:
    '@{username} бөтенләйгә бетерелсенме? Токены шунда ук эшләүдән туктый, вебхугы алына, һәм ботны кире кайтарып булмый.',
  button_delete_yes: 'Әйе, ботны бетерергә',
  deleted: '@{username} бетерелде.',

  notice_leak_found:
    '@{username} токены ачык урында табылды ({where}) һәм инде эшләми. Яңасын чыгарыгыз: /revoke',
  notice_user_token_leaked: 'Сезнең «{name}» керү токены ачык урында табылды ({where}) һәм инде эшләми.',
  notice_webhook_failing:
    '@{username} вебхугы {since} вакытыннан бирле эшләми. Соңгы хата: {error}\n\nЯңартулар 24 сәгатькә кадәр көтә.',
  notice_webhook_removed:
    '@{username} вебхугы алынды, чөнки аның серверы 23 сәгать буе 410 коды белән җавап бирде. Хәзер бот яңартуларны сорап ала ала.',
  notice_transferred_to_you: '{from} сезгә @{username} ботын тапшырды. Ул /mybots исемлегендә, токены яңа.',
  notice_transfer_offered:
    '{from} сезгә @{username} ботын тапшырырга тели. Кабул итәсезме? Тәкъдим бер атна гамәлдә.',
  notice_transfer_accepted: '{to} кабул итте: @{username} хәзер аныкы, сезнең керү хокукыгыз калмады.',
  notice_transfer_declined: '{to} @{username} ботыннан баш тартты. Ул сезнеке булып кала.',
  somewhere: 'урыны билгесез',
  somebody: 'Кемдер',
};
