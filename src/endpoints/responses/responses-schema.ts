import * as z from 'zod'
import { isJsonObject, isSet } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import { listOf } from '../schema.ts'
import { LARGEST_TOKEN_BOUND } from '../token-estimate.ts'
import { itemType, type ResponsesItem } from './responses-request.ts'

/** Smallest `max_output_tokens` that the API accepts. */
const MIN_OUTPUT_TOKENS = 16
const MAX_METADATA_PAIRS = 16
const MAX_URL_LENGTH = 2048

/** Kinds of members of items: a check, and the problem of a value that fails it. */
const MEMBER_KINDS = {
  text: [isText, 'is required, as text'],
  optionalText: [(value: unknown) => !isSet(value) || isText(value), 'must be text'],
  texts: [areTexts, 'is required, as a list of parts with text'],
  optionalTexts: [(value: unknown) => !isSet(value) || areTexts(value), 'must be a list of parts with text'],
} as const

/** Members of items by item type. Other types belong to vendors that know them. */
const MEMBERS: ReadonlyMap<string, Readonly<Record<string, keyof typeof MEMBER_KINDS>>> = new Map([
  ['function_call', { call_id: 'text', name: 'text', arguments: 'text', namespace: 'optionalText' }],
  ['function_call_output', { call_id: 'text' }],
  ['custom_tool_call', { call_id: 'text', name: 'text', input: 'text', namespace: 'optionalText' }],
  ['custom_tool_call_output', { call_id: 'text' }],
  ['item_reference', { id: 'text' }],
  ['reasoning', { summary: 'texts', content: 'optionalTexts', encrypted_content: 'optionalText' }],
])

const ROLES: ReadonlySet<unknown> = new Set(['user', 'system', 'developer', 'assistant'])

type Fault = readonly [member: string, problem: string]

/** Rules of an item, such as a message, a call or its output. */
export const responsesItem = onDemand(() =>
  z.looseObject({ type: z.string().nullish(), id: z.string().nullish() }).check((context) => {
    const fault = faultOf(context.value)
    if (fault === undefined) return
    context.issues.push({ code: 'custom', path: [fault[0]], message: fault[1], input: context.value })
  }),
)

function faultOf(value: ResponsesItem): Fault | undefined {
  const type = itemType(value)
  for (const [member, kind] of Object.entries(MEMBERS.get(type) ?? {})) {
    const [isValid, problem] = MEMBER_KINDS[kind]
    if (!isValid(value[member])) return [member, `${problem}, in an item of type ${type}`]
  }
  if (type === 'message') return messageFault(value)
  if (type.endsWith('_call_output') && MEMBERS.has(type) && !isContent(value['output']))
    return ['output', 'must be text or a list of parts']
  return undefined
}

function messageFault({ role, content }: ResponsesItem): Fault | undefined {
  if (!ROLES.has(role)) return ['role', 'must be user, system, developer or assistant']
  return isContent(content) ? undefined : ['content', 'must be text or a list of parts']
}

function isContent(value: unknown): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.every(isPart))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((part) => isPart(part) && isText(part.text))
}

function isPart(value: unknown): value is { type: string; text?: unknown } {
  return isJsonObject(value) && typeof value['type'] === 'string'
}

/** Rules of metadata. */
export const metadataSchema = onDemand(() =>
  z
    .record(z.string().max(64), z.string().max(512))
    .refine((pairs) => Object.keys(pairs).length <= MAX_METADATA_PAIRS, `at most ${MAX_METADATA_PAIRS} pairs`),
)

const fields = onDemand(() => ({
  model: z.string().min(1),
  input: z.union([z.string(), listOf(responsesItem())]).nullish(),
  instructions: z.string().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  tools: listOf(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.union([z.string(), z.looseObject({ type: z.string() })]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  max_tool_calls: z.int().min(1).nullish(),
  text: z
    .looseObject({ format: z.looseObject({ type: z.string() }).nullish(), verbosity: z.string().nullish() })
    .nullish(),
  reasoning: z
    .looseObject({
      effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).nullish(),
      summary: z.string().nullish(),
    })
    .nullish(),
  include: listOf(z.string()).nullish(),
  previous_response_id: z.string().min(1).nullish(),
  conversation: z.union([z.string().min(1), z.looseObject({ id: z.string().min(1) })]).nullish(),
  truncation: z.enum(['auto', 'disabled']).nullish(),
  metadata: metadataSchema().nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  service_tier: z.string().nullish(),
}))

/**
 * Rules of a request for a response (OpenAI API reference, "Create a model response"). Only fields that the gateway reads are
 * checked, because the API grows with every release of its clients.
 */
export const responsesSchema = onDemand(() =>
  z
    .looseObject({
      ...fields(),
      max_output_tokens: z.int().min(MIN_OUTPUT_TOKENS).max(LARGEST_TOKEN_BOUND).nullish(),
      stream: z.boolean().nullish(),
      stream_options: z.looseObject({ include_obfuscation: z.boolean().nullish() }).nullish(),
      store: z.boolean().nullish(),
      background: z.boolean().nullish(),
      webhook_url: z
        .string()
        .max(MAX_URL_LENGTH)
        .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), 'must be an http(s) URL')
        .nullish(),
    })
    .check(needsInput)
    .check((context) => {
      const { previous_response_id: previous, conversation } = context.value
      if (isSet(previous) && isSet(conversation))
        context.issues.push({
          code: 'custom',
          path: ['previous_response_id'],
          message: 'cannot be used together with conversation',
          input: context.value,
        })
      const { background, store, webhook_url: url } = context.value
      if (background === true && store === false)
        context.issues.push({
          code: 'custom',
          path: ['store'],
          message: 'must not be false with background: the answer is read by its id',
          input: context.value,
        })
      if (background !== true && isSet(url))
        context.issues.push({
          code: 'custom',
          path: ['webhook_url'],
          message: 'needs background: true',
          input: context.value,
        })
    }),
)

/** Rules of a request to count tokens: like a request for a response, without members that only an answer has. */
export const inputTokensSchema = onDemand(() => z.looseObject(fields()).check(needsInput))

/** Members that may contain the whole input, so that `input` is optional. */
const HOLDS_INPUT = ['previous_response_id', 'conversation', 'prompt'] as const

function needsInput({ value, issues }: z.core.ParsePayload<Readonly<Record<string, unknown>>>): void {
  if (isSet(value['input']) || HOLDS_INPUT.some((field) => isSet(value[field]))) return
  const message = `is required without ${HOLDS_INPUT.join(', ')}`
  issues.push({ code: 'custom', path: ['input'], message, input: value })
}
