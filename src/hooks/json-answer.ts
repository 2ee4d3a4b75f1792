import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { TextPart } from '../endpoints/texts.ts'
import type { AnswerResult, EndpointId, Hook, HookAnswer } from './hook.ts'
import { JsonCheck } from './json-check.ts'

/** What is done with answers that should match a JSON schema. */
export interface JsonAnswerOptions<Id extends EndpointId = EndpointId> {
  /** `syntax`: a fence around the JSON, and faults of its syntax, are mended (default). `none`: answers are checked only. */
  readonly repair?: 'none' | 'syntax'
  /** `mark`: the caller gets it, with `x-signalbox-schema: invalid` (default). `error`: 502 `answer_invalid`. */
  readonly invalid?: 'mark' | 'error'
  /** Default: all whose requests may name a schema. */
  readonly endpoints?: readonly Id[]
  /** Said in events. Default `json-answer`. */
  readonly name?: string
}

const JSON_ANSWER_OPTIONS = {
  repair: true,
  invalid: true,
  endpoints: true,
  name: true,
} satisfies MemberNames<JsonAnswerOptions>

/** Where the validator and the repair are loaded from, which only gateways with this hook need. */
let loading: Promise<JsonCheck> | undefined

function loadedCheck(): Promise<JsonCheck> {
  loading ??= Promise.all([import('@cfworker/json-schema'), import('jsonrepair')]).then(
    ([{ Validator }, { jsonrepair }]) =>
      new JsonCheck({
        validates: (schema, value) => new Validator(schema, '2020-12').validate(value).valid,
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
 * A hook that checks answers against the JSON schema that their requests name, for vendors that do not hold to it, and mends their
 * syntax. Headers say what was done: `x-signalbox-repaired: syntax`, `x-signalbox-schema: invalid` or `unchecked`. Streams of such requests
 * are held back to their end, others are not touched. Answers that call tools are not checked.
 * @throws TypeError for an unknown or unusable member, naming it.
 */
export function jsonAnswer<Id extends EndpointId = EndpointId>(options: JsonAnswerOptions<Id> = {}): Hook<Id> {
  checkMembers(options, JSON_ANSWER_OPTIONS, 'jsonAnswer')
  const { name = 'json-answer', endpoints, repair = 'syntax', invalid = 'mark' } = options
  if (repair !== 'none' && repair !== 'syntax') throw new TypeError('jsonAnswer: repair must be none or syntax')
  if (invalid !== 'mark' && invalid !== 'error') throw new TypeError('jsonAnswer: invalid must be mark or error')
  const hook: Hook = {
    name,
    ...(endpoints && { endpoints }),
    appliesTo: ({ jsonSchema }) => jsonSchema !== undefined,
    async answer(answer: HookAnswer): Promise<AnswerResult | undefined> {
      const parts = checkedParts(answer)
      if (parts.length === 0) return undefined
      const check = await loadedCheck()
      const texts = new Map<string, string>()
      let state: 'valid' | 'invalid' | 'unchecked' = 'valid'
      for (const { id, text } of parts) {
        const found = check.of(text, answer.jsonSchema, repair === 'syntax')
        if (found.state === 'invalid' || (found.state === 'unchecked' && state === 'valid')) state = found.state
        if (found.text !== undefined) texts.set(id, found.text)
      }
      if (state === 'invalid' && invalid === 'error') return { deny: UNUSABLE }
      const headers: Record<string, string> = {}
      if (texts.size > 0) headers['x-signalbox-repaired'] = 'syntax'
      if (state !== 'valid') headers['x-signalbox-schema'] = state
      return Object.keys(headers).length === 0 ? undefined : { ...(texts.size > 0 && { texts }), headers }
    },
  }
  return hook as unknown as Hook<Id>
}

const UNUSABLE = {
  as: 'error',
  status: 502,
  code: 'answer_invalid',
  message: 'The model did not answer with JSON that matches the schema.',
} as const

/** Texts that say the answer: no reasoning, no refusal, and none beside a call of a tool, which is not the answer yet. */
function checkedParts(answer: HookAnswer): readonly TextPart[] {
  const parts = answer.texts()
  if (parts.some(({ kind }) => kind === 'tool_arguments')) return []
  return parts.filter(({ kind, id }) => kind === 'text' && !id.endsWith('.refusal'))
}
