import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { TextPart } from '../endpoints/texts.ts'
import type { EndpointId, Hook, HookAnswer } from './hook.ts'
import { type CheckedJson, JsonCheck, type JsonTools } from './json-check.ts'
import { MAX_REPLY_CHARACTERS, SECOND_TRY, type SecondTryAnswer, type SecondTryResult } from './second-try.ts'

/** Treatment of answers that should match a JSON schema. */
export interface JsonAnswerOptions<Id extends EndpointId = EndpointId> {
  /**
   * `syntax`: code fences and syntax faults are repaired (default). `retry`: if that does not help, the model is also called once
   * more with the fault. Money for both calls is reserved and both are charged; streams, answers from the cache, batches and
   * background requests are not retried. `none`: answers are only checked.
   */
  readonly repair?: 'none' | 'syntax' | 'retry'
  /** `mark`: the caller gets the answer with `x-signalbox-schema: invalid` (default). `error`: 502 `answer_invalid`. */
  readonly invalid?: 'mark' | 'error'
  /** Ids of the covered endpoints. Default: all whose requests may specify a schema. */
  readonly endpoints?: readonly Id[]
  /** Name of the hook in events. Default `json-answer`. */
  readonly name?: string
}

const JSON_ANSWER_OPTIONS = {
  repair: true,
  invalid: true,
  endpoints: true,
  name: true,
} satisfies MemberNames<JsonAnswerOptions>

/** Loads the validator and the repair, which only gateways with this hook need. */
let loading: Promise<JsonTools> | undefined

function loadedTools(): Promise<JsonTools> {
  loading ??= Promise.all([import('@cfworker/json-schema'), import('jsonrepair')]).then(
    ([{ Validator }, { jsonrepair }]) => ({
      faults: (schema, value) =>
        new Validator(schema, '2020-12')
          .validate(value)
          .errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`),
      repaired: jsonrepair,
    }),
    (error: unknown) => {
      loading = undefined
      throw error
    },
  )
  return loading
}

/**
 * Creates a hook that checks answers against the JSON schema of their requests, for vendors that do not enforce it, and repairs
 * their syntax or retries once. Headers report the result: `x-signalbox-repaired: syntax` or `retry`, `x-signalbox-schema:
 * invalid` or `unchecked`. Holds streams of such requests back to their end, and ignores answers with tool calls.
 * @throws TypeError with the unknown or unusable member.
 */
export function jsonAnswer<Id extends EndpointId = EndpointId>(options: JsonAnswerOptions<Id> = {}): Hook<Id> {
  checkMembers(options, JSON_ANSWER_OPTIONS, 'jsonAnswer')
  const { name = 'json-answer', endpoints, repair = 'syntax', invalid = 'mark' } = options
  if (!REPAIRS.has(repair)) throw new TypeError('jsonAnswer: repair must be none, syntax or retry')
  if (invalid !== 'mark' && invalid !== 'error') throw new TypeError('jsonAnswer: invalid must be mark or error')
  const hook: Hook = {
    name,
    ...(endpoints && { endpoints }),
    ...(repair === 'retry' && { [SECOND_TRY]: true }),
    appliesTo: ({ jsonSchema }) => jsonSchema !== undefined,
    async answer(answer: SecondTryAnswer): Promise<SecondTryResult | undefined> {
      const parts = checkedParts(answer)
      if (parts.length === 0) return undefined
      const check = new JsonCheck(await loadedTools())
      const checked = parts.map(({ text }) => check.of(text, answer.jsonSchema, repair !== 'none'))
      const states = new Set(checked.map(({ state }) => state))
      if (!states.has('invalid')) return mended(parts, checked, answer)
      const [only] = parts
      const isAskedAgain = repair === 'retry' && answer[SECOND_TRY] !== true && parts.length === 1
      const again = isAskedAgain && { [SECOND_TRY]: { answer: only!.text, reply: replyTo(checked[0]!) } }
      return { ...(invalid === 'error' ? { deny: UNUSABLE } : mended(parts, checked, answer)), ...again }
    },
  }
  return hook as unknown as Hook<Id>
}

const REPAIRS: ReadonlySet<string> = new Set<JsonAnswerOptions['repair'] & string>(['none', 'syntax', 'retry'])

/** Returns the repaired texts, and headers with the state of all texts. */
function mended(
  parts: readonly TextPart[],
  checked: readonly CheckedJson[],
  { [SECOND_TRY]: isSecond }: SecondTryAnswer,
): SecondTryResult | undefined {
  const texts = new Map<string, string>()
  let state: CheckedJson['state'] = 'valid'
  for (const [index, found] of checked.entries()) {
    if (found.state === 'invalid' || (found.state === 'unchecked' && state === 'valid')) state = found.state
    if (found.text !== undefined) texts.set(parts[index]!.id, found.text)
  }
  const headers: Record<string, string> = {}
  if (isSecond === true && state !== 'invalid') headers['x-signalbox-repaired'] = 'retry'
  else if (texts.size > 0) headers['x-signalbox-repaired'] = 'syntax'
  if (state !== 'valid') headers['x-signalbox-schema'] = state
  return Object.keys(headers).length === 0 ? undefined : { ...(texts.size > 0 && { texts }), headers }
}

function replyTo({ fault = 'it does not match' }: CheckedJson): string {
  const end = 'Answer again with JSON that matches it, and with nothing else.'
  const begin = 'This answer does not match the JSON schema of the request: '
  return `${begin}${fault.slice(0, MAX_REPLY_CHARACTERS - begin.length - end.length - 2)}. ${end}`
}

const UNUSABLE = {
  as: 'error',
  status: 502,
  code: 'answer_invalid',
  message: 'The model did not answer with JSON that matches the schema.',
} as const

/** Texts that are not the answer itself: a refusal, and sources of the answer. */
const BESIDE = /^(?:citations|search_results|related_questions)\[|\.(?:refusal$|annotations\[)/

/**
 * Returns the texts of the answer: no reasoning, refusal or title of a source, and none next to a tool call, which precedes the
 * answer.
 */
function checkedParts(answer: HookAnswer): readonly TextPart[] {
  const parts = answer.texts()
  if (parts.some(({ kind }) => kind === 'tool_arguments')) return []
  return parts.filter(({ kind, id }) => kind === 'text' && !BESIDE.test(id))
}
