import { withoutFaultMarks } from '../faults/fault-marks.ts'
import { asObject, asText, isGiven } from '../model/loose-json.ts'
import { countTokens } from '../model/words.ts'
import { credentialOf, type SandboxCall } from '../sandbox-call.ts'
import type { AnswerContext } from '../sandbox-operation.ts'
import { geminiImageModel } from './gemini-image-models.ts'
import { interactionId } from './gemini-interaction-ids.ts'
import { asFormats, inputBlocks } from './gemini-interactions-checks.ts'
import { geminiPicture } from './gemini-picture.ts'
import { thoughtSignature } from './thought-signature.ts'

type Json = Readonly<Record<string, unknown>>

/** An interaction with its output steps; `steps` and `usage` are absent where the vendor leaves them out. */
export interface InteractionAnswer {
  /** Absent when nothing is kept. */
  readonly id: string | undefined
  readonly model: string
  readonly status: 'completed' | 'failed'
  readonly created: string
  readonly errors: readonly Json[]
  readonly steps: readonly Json[]
  readonly usage: Json | undefined
}

const THOUGHT_TOKENS = 24
const CAPTION = 'Here is your picture.'

/** Answers a request that passed the checks, always in the same way. */
export function interactionAnswer(call: SandboxCall, context: AnswerContext): InteractionAnswer {
  const request = asObject(call.body)
  const model = asText(request['model'])
  const created = `${new Date(context.nowMs).toISOString().slice(0, 19)}Z`
  const id = request['store'] === false ? undefined : interactionId(credentialOf(call), context.id)
  const input = inputTokens(request, model)
  if (context.blocked) {
    const errors = [{ code: 'content_blocked', message: 'The picture was blocked by the safety filter.' }]
    return { id, model, status: 'failed', created, errors, steps: [], usage: context.usage(usageOf(input, 0, 0, 0)) }
  }
  const formats = asFormats(request['response_format'])
  const format = formats.find(({ type }) => type === 'image')
  const hasText = formats.length === 0 || formats.some(({ type }) => type === 'text')
  const picture = geminiPicture({
    model,
    size: givenText(format?.['image_size']),
    ratio: givenText(format?.['aspect_ratio']),
    mimeType: givenText(format?.['mime_type']),
    seed: `${asText(request['previous_interaction_id'])}\n${withoutFaultMarks(promptText(request))}`,
  })
  const level = asObject(request['generation_config'])['thinking_level']
  const thinks = isGiven(level) || geminiImageModel(model).alwaysThinks
  const image = { type: 'image', mime_type: picture.mimeType, data: picture.base64 }
  const steps = [
    ...(thinks ? [{ type: 'thought', signature: thoughtSignature(context.id) }] : []),
    // Text and picture come in steps of their own.
    ...(hasText ? [{ type: 'model_output', content: [{ type: 'text', text: CAPTION }] }] : []),
    { type: 'model_output', content: [image] },
  ]
  const text = hasText ? countTokens([CAPTION]) : 0
  const usage = context.usage(usageOf(input, picture.tokens, text, thinks ? THOUGHT_TOKENS : 0))
  return { id, model, status: 'completed', created, errors: [], steps, usage }
}

/** The text of the input. */
export function promptText(body: unknown): string {
  return inputBlocks(asObject(body)['input'])
    .flatMap(({ type, text }) => (type === 'text' ? [asText(text)] : []))
    .join('\n')
}

function givenText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

interface InputTokens {
  readonly text: number
  readonly image: number
}

function inputTokens(request: Json, model: string): InputTokens {
  const pictures = inputBlocks(request['input']).filter(({ type }) => type === 'image').length
  return {
    text: countTokens([promptText(request), asText(request['system_instruction'])]),
    image: pictures * geminiImageModel(model).tokensPerReference,
  }
}

/** Output is counted without thoughts, and its text is not itemised. */
function usageOf(input: InputTokens, imageTokens: number, textTokens: number, thoughtTokens: number): Json {
  const totalInput = input.text + input.image
  return {
    total_tokens: totalInput + imageTokens + textTokens + thoughtTokens,
    total_input_tokens: totalInput,
    input_tokens_by_modality: modalities({ text: input.text, image: input.image }),
    total_output_tokens: imageTokens + textTokens,
    output_tokens_by_modality: modalities({ image: imageTokens }),
    total_thought_tokens: thoughtTokens,
    total_cached_tokens: 0,
    total_tool_use_tokens: 0,
  }
}

function modalities(tokens: Readonly<Record<string, number>>): Json[] {
  return Object.entries(tokens)
    .filter(([, count]) => count > 0)
    .map(([modality, count]) => ({ modality, tokens: count }))
}
