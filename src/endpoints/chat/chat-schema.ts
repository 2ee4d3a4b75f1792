import * as z from 'zod'
import { isJsonObject } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import { listOf } from '../list-of.ts'
import { LARGEST_TOKEN_BOUND } from '../token-estimate.ts'

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
