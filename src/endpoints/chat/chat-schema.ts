import * as z from 'zod'
import { EFFORTS } from '../../catalog/vendor-models/vendor-model.ts'
import { isJsonObject } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import { listOf } from '../schema.ts'
import { LARGEST_TOKEN_BOUND } from '../token-estimate.ts'
import type { ChatRequest, ReasoningEffort } from './chat-request.ts'

const toolCall = onDemand(() =>
  z.looseObject({
    id: z.string(),
    type: z.string().optional(),
    function: z.looseObject({ name: z.string(), arguments: z.string() }).optional(),
  }),
)

const contentPart = onDemand(() =>
  z
    .looseObject({
      type: z.string(),
      text: z.string().optional(),
      image_url: z.looseObject({ url: z.string().min(1) }).optional(),
    })
    .check((context) => {
      const part = context.value
      if (part.type === 'text' && part.text === undefined) issue(context, ['text'], 'is required in a text part')
      if (part.type === 'image_url' && part.image_url === undefined)
        issue(context, ['image_url'], 'is required in an image_url part')
    }),
)

const message = onDemand(() =>
  z
    .looseObject({
      role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
      content: z.union([z.string(), listOf(contentPart()), z.null()]).optional(),
      name: z.string().nullish(),
      tool_calls: listOf(toolCall()).nullish(),
      tool_call_id: z.string().nullish(),
    })
    .check((context) => {
      const { role, content, tool_calls, tool_call_id } = context.value
      if (role === 'tool' ? typeof tool_call_id !== 'string' : typeof tool_call_id === 'string') {
        issue(
          context,
          ['tool_call_id'],
          role === 'tool' ? 'is required when role is "tool"' : 'is allowed only when role is "tool"',
        )
      }
      const mayBeEmpty = role === 'assistant' && (Array.isArray(tool_calls) || hasOtherContent(context.value))
      if ((content === undefined || content === null) && !mayBeEmpty) issue(context, ['content'], 'is required')
    }),
)

function hasOtherContent(value: Record<string, unknown>): boolean {
  return typeof value['refusal'] === 'string' || isJsonObject(value['audio']) || isJsonObject(value['function_call'])
}

function issue(context: { issues: unknown[]; value: unknown }, path: PropertyKey[], text: string): void {
  context.issues.push({ code: 'custom', path, message: text, input: context.value })
}

/** Vendors accept 64 bits, but a number here holds only 53. Bytes that are passed on keep them all. */
const seed = onDemand(() => z.number().refine(Number.isInteger, 'must be an integer').meta({ type: 'integer' }))

const tokenBound = onDemand(() => z.int().min(1).max(LARGEST_TOKEN_BOUND))

/** Rules of the chat request: the bounds of the API specification; unknown fields pass. */
export const chatSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    messages: listOf(message()).min(1),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    max_tokens: tokenBound().nullish(),
    max_completion_tokens: tokenBound().nullish(),
    n: z.int().min(1).max(128).nullish(),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    stop: z.union([z.string(), listOf(z.string(), 4)]).nullish(),
    presence_penalty: z.number().min(-2).max(2).nullish(),
    frequency_penalty: z.number().min(-2).max(2).nullish(),
    logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
    logprobs: z.boolean().nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
    seed: seed().nullish(),
    tools: listOf(z.looseObject({ type: z.string() })).nullish(),
    tool_choice: z.union([z.string(), z.looseObject({ type: z.string() })]).nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    response_format: z.looseObject({ type: z.string() }).nullish(),
    reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).nullish(),
    user: z.string().nullish(),
  }),
)

/** Fields that some models reject, or reject while they reason. */
type SamplingField = 'temperature' | 'top_p' | 'stop'

/** Values that a model accepts in the fields that translations into chat write. */
export interface ChatAbilities {
  /** Accepted reasoning efforts. Empty if the model does not reason; `undefined` if they are not known. */
  readonly efforts: readonly string[] | undefined
  /** Returns the fields that the model rejects with an effort. If omitted, it rejects none. */
  rejectedFields?(effort: string | null | undefined): readonly SamplingField[]
}

const DEFAULTS: Readonly<Record<string, unknown>> = { temperature: 1, top_p: 1 }

/** Returns a translated request as its model accepts it, and the names of the fields that were changed or left out. */
export function fitRequest(
  request: ChatRequest,
  abilities: ChatAbilities | undefined,
): { readonly request: ChatRequest; readonly dropped: readonly string[] } {
  if (abilities === undefined) return { request, dropped: [] }
  const { reasoning_effort: asked, ...rest } = request
  const effort = acceptedEffort(asked, abilities.efforts)
  const isSame = effort === asked || (effort === undefined && asked === 'none')
  const dropped: string[] = isSame ? [] : ['reasoning_effort']
  const fitted: Record<string, unknown> = { ...rest, ...(effort === undefined ? {} : { reasoning_effort: effort }) }
  for (const field of abilities.rejectedFields?.(effort) ?? []) {
    const value = request[field]
    if (value === undefined || value === null) continue
    delete fitted[field]
    if (value !== DEFAULTS[field]) dropped.push(field)
  }
  return { request: fitted as unknown as ChatRequest, dropped }
}

/** Returns the nearest accepted effort, or the lower of two. A request for reasoning never becomes `none`. */
function acceptedEffort(
  asked: ChatRequest['reasoning_effort'],
  efforts: readonly string[] | undefined,
): ChatRequest['reasoning_effort'] | undefined {
  if (asked === undefined || asked === null || efforts === undefined || efforts.includes(asked)) return asked
  const rank = EFFORTS.indexOf(asked)
  const offered = EFFORTS.filter((effort) => effort !== 'none' && efforts.includes(effort))
  const distance = (effort: ReasoningEffort): number => Math.abs(EFFORTS.indexOf(effort) - rank)
  return rank === -1 ? offered[0] : offered.sort((one, other) => distance(one) - distance(other))[0]
}
