// The rules of check-prose.mjs, as data. A pattern is matched against one sentence, in which inline code is replaced by `x`.
//
// Kinds of sentences: `docstring` is the first sentence of a doc comment, `comment` any other sentence of a comment, `page` a sentence, an
// item or a cell of a page, `heading` its heading, `message` a string in the source, and `constant` the name of a constant in capitals.

const COMMENTS = ['docstring', 'comment']
const PROSE = [...COMMENTS, 'page']
const PREPOSITION = 'OF|IN|AT|BY|BESIDE|BEHIND|WITHOUT|WITH|FOR|FROM|TO|AS|BEYOND|UNDER|AFTER|BEFORE|BETWEEN'

/** Words that have a plainer one, which is used everywhere: the pattern, the word to write, a sentence with it, and one that is accepted. */
const WORDS = [
  [/\bpictures?\b/i, 'image', 'Pictures of the request.', 'Images of the request.'],
  [/\bdeare(?:r|st)\b/i, 'most expensive', 'Price of the dearest model.', 'Price of the most expensive model.'],
  [/\bmend(?:s|ed|ing)?\b/i, 'repair or fix', 'Mends the JSON.', 'Repairs the JSON. Amends nothing.'],
  [/\banew\b/i, 'again', 'Callers must connect anew.', 'Callers must connect again.'],
  [/\bunder way\b/i, 'in progress or in flight', 'Calls under way.', 'Calls in flight.'],
  [/\bby hand\b/i, 'manually', 'Charges made by hand.', 'Charges made manually.'],
  [/\bat once\b/i, 'immediately or at the same time', 'Two calls at once.', 'Two calls at the same time.'],
  [/\bbeside\b/i, 'alongside or in addition to', 'Options beside the preset.', 'Options besides the preset.'],
  [/\ball the same\b/i, 'anyway', 'The vendor bills it all the same.', 'The vendor bills it anyway.'],
  [/\btime is over\b/i, 'expired or timed out', 'Holds whose time is over.', 'Expired holds.'],
  [/\bfurther [a-z]+s\b/i, 'more, additional or another', 'The further vendors.', 'Each label splits entries further.'],
  [
    /\bstands? (?:first|last|behind|in front)\b/i,
    'comes first or last',
    'The newest stands first.',
    'The newest comes first.',
  ],
  [/\bstands? in (?:the|a|its|their|them)\b/i, 'is in', 'The id stands in the header.', 'The id is in the header.'],
  [/\b(?:tells|told)\b/i, 'reports, emits or returns', 'An event tells the cost.', 'An event reports the cost.'],
  [/\bhears?\b/i, 'gets', 'The vendor never hears of it.', 'The vendor never gets it.'],
  [
    /\b(?:vendor|store|server|gateway|model)s? (?:is|are|was) asked\b/i,
    'called',
    'A vendor is asked.',
    'A vendor is called.',
  ],
  [/\bgives? back\b/i, 'returns', 'Gives back the tokens.', 'Returns the tokens.'],
  [
    /\b(?:callers?|clients?) (?:leaves?|left)\b/i,
    'disconnects',
    'The caller left early.',
    'The caller disconnected early.',
  ],
  [
    /\b(?:comes?|goes|keys|lines|writes?|written) (?:behind|in front of)\b/i,
    'after or before',
    'Keys behind this one.',
    'A server behind a proxy.',
  ],
]

export const RULES = [
  {
    name: 'question',
    kinds: COMMENTS,
    pattern: /\?$/,
    advice: 'state it: "Whether …", "Number of …"',
    bad: ['May pages send cookies?'],
    good: ['Whether pages may send cookies.'],
  },
  {
    name: 'pronoun opener',
    kinds: ['docstring'],
    pattern: /^(?:(?:Those|These|They|It|Such)\b|The same\b|As of\b|One (?:of|that|who|which|whose)\b)/,
    advice: 'name the thing: an editor shows the docstring alone',
    bad: [
      'Those that sums keep.',
      'It is sent once.',
      'One that was cancelled.',
      'The same of the UTC month.',
      'One of x.',
    ],
    good: ['Dimensions that sums keep.', 'One or several API keys.', 'One part of a form.'],
  },
  {
    name: 'pronoun opener',
    kinds: ['comment', 'page'],
    pattern: /^(?:Those|One) (?:that|who|which|whose)\b/,
    advice: 'name the thing: "A cancelled batch …"',
    bad: ['One that is cancelled keeps the answers.', 'Those whose window began first come first.'],
    good: ['A cancelled batch keeps its answers.', 'One key that expires is enough.'],
  },
  {
    name: 'what as the subject',
    kinds: PROSE,
    pattern: /^(?:What|Who|Whoever|Whatever)\b(?!.*\?$)/,
    advice: 'begin with the noun: "Result of …", "Vendors that …"',
    bad: ['What a finished stream leaves.', 'Who bills tokens sends no units.'],
    good: ['Result of a finished stream.', 'Vendors that bill tokens send no units.', 'Whole answers.'],
  },
  {
    name: 'value with a colon',
    kinds: COMMENTS,
    pattern: /(?:^|; )(?:undefined|absent|null|empty|true|false|unset|missing): /i,
    advice: 'write a sentence: "`undefined` if …", "If omitted, …"',
    bad: ['Undefined: all.', 'Names of plans; absent: unknown.'],
    good: ['Allowed origins, or x if every origin is allowed.', 'Default false: it is dropped.'],
  },
  {
    name: 'fragment',
    kinds: ['docstring'],
    pattern: /^(?:So many|Most \w+ (?:kept|held|sent)|By (?:the )?[\w-]+ (?:name|id)\.|Only of)\b/,
    advice: 'begin with the noun: "Number of …", "Headers, keyed by …"',
    bad: ['So many records are lost.', 'Most buckets kept.', 'Only of this account.'],
    good: ['Number of records that are lost.', 'Maximum number of buckets.', 'Most models accept it.'],
  },
  {
    name: 'status as a state',
    kinds: PROSE,
    pattern: /\b(?:it|that|this|which|they|submitting) (?:is|are) [45]\d\d\b/i,
    advice: 'requests get a status, or fail with it',
    bad: ['Below that it is 402.'],
    good: ['Below that, the request fails with 402.'],
  },
  {
    name: 'text for a string',
    kinds: ['message'],
    pattern: /\bmust be (?:a text|texts)\b/,
    advice: 'use the words of the API: string, number, list, object',
    bad: ['deny.message must be a text'],
    good: ['deny.message must be a string'],
  },
  {
    name: 'preposition in a name',
    kinds: ['constant'],
    pattern: new RegExp(`^(?:${PREPOSITION})_|_(?:${PREPOSITION})$|_AT_ONCE\\b|UNDER_WAY|_OF_THE_`),
    advice: 'name a constant with a noun, and a unit if it has one',
    bad: ['OF_NOTHING', 'KEPT_AT_ONCE', 'CERTAINLY_BEYOND', 'KIND_OF', 'KILLS_UNDER_WAY'],
    good: ['SAVE_BATCH_SIZE', 'LETTER_BY_KIND', 'OFFERS', 'OVERFLOW_FACTOR'],
  },
  ...WORDS.map(([pattern, word, bad, good]) => ({
    name: 'other word',
    kinds: [...PROSE, 'heading'],
    pattern,
    advice: `write ${word}`,
    bad: [bad],
    good: [good],
  })),
]

/** Accepted findings: the file, a part of the sentence or the name, and the reason. An entry that accepts nothing is an error. */
export const EXCEPTIONS = [
  { file: 'src/stores/memory/memory-cache.ts', part: 'IN_FLIGHT', reason: 'the term of the field' },
  { file: 'src/gateway/gateway.ts', part: 'IN_PROCESS_OPTIONS', reason: 'in-process is an adjective' },
  {
    file: 'src/testing/sandbox/files/draw-image.ts',
    part: 'sequence and picture parameters',
    reason: 'the terms of H.264',
  },
]
