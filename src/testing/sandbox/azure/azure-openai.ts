import { chatTurn } from '../model/chat-turn.ts'
import { checkEffort, OPENAI_ERRORS, openaiInvalid } from '../openai/openai-models.ts'
import { type ChatDialect, chatAnswer, checkChatRequest, readChatPrompt, tokenLimit } from '../openai-dialect/chat.ts'
import { asObject, asText, type Fields } from '../request-fields.ts'
import { checkApiKey, jsonReply, RefusedCall, type SandboxOperation, type SandboxReply } from '../sandbox-operation.ts'

const V1 = '/openai/v1/chat/completions'
const DATED = /^\/openai\/deployments\/([^/]+)\/chat\/completions$/

const DIALECT: ChatDialect = {
  answerModel: (deployment) => `${deployment}-2024-08-06`,
  showsReasoning: false,
  hasOfficialExtras: true,
  laterToolCallId: undefined,
  usage: ({ prompt, cached, completion, reasoning }) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0 },
  }),
}

const SAFE = { hate: { filtered: false, severity: 'safe' }, violence: { filtered: false, severity: 'safe' } }

/**
 * Azure OpenAI: chat at the v1 path and at the dated one, with the results of an asynchronous content filter in its streams. A
 * blocked prompt gets 400 `content_filter`.
 */
export const AZURE_OPENAI_CHAT: SandboxOperation = {
  vendor: 'azure',
  operation: 'chat',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && (path === V1 || DATED.test(path)),
  promptText: (body) => readChatPrompt(body).lastUserText,
  answer(call, context) {
    checkApiKey(call, OPENAI_ERRORS)
    const deployment = DATED.exec(call.path)?.[1]
    if (deployment !== undefined && !new URLSearchParams(call.query).has('api-version'))
      throw new RefusedCall(jsonReply(404, [], { error: { code: '404', message: 'Resource not found' } }))
    const body = asObject(call.body)
    const request: Fields = deployment === undefined ? body : { ...body, model: decodeURIComponent(deployment) }
    checkChatRequest(request, openaiInvalid)
    if (context.blocked) throw new RefusedCall(filteredPrompt())
    const effort = asText(request['reasoning_effort'])
    checkEffort(asText(request['model']), effort, 'reasoning_effort')
    const prompt = { ...readChatPrompt(request), reasoning: effort !== '' && effort !== 'none' }
    const turn = chatTurn({ ...prompt, maxTokens: tokenLimit(request) }, context)
    return filtered(chatAnswer(request, turn, context, DIALECT, ['apim-request-id', 'sandbox-azure']))
  },
}

function filteredPrompt(): SandboxReply {
  const innererror = { code: 'ResponsibleAIPolicyViolation', content_filter_result: SAFE }
  const message = 'The response was filtered due to the prompt triggering the content management policy.'
  return jsonReply(400, [], {
    error: { message, type: null, param: 'prompt', code: 'content_filter', status: 400, innererror },
  })
}

/** Adds the results of the filter: for the prompt in the first event, for the text after it, even after its end. */
function filtered(reply: SandboxReply): SandboxReply {
  if (!reply.streamed) return reply
  const head = { id: '', object: '', created: 0, model: '' }
  const prompt = { ...head, choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: SAFE }] }
  const verdict = { index: 0, finish_reason: null, content_filter_results: SAFE, content_filter_offsets: {} }
  const behind = event({ ...head, choices: [verdict], usage: null })
  const [first = '', second = '', ...rest] = reply.pieces
  const tail = rest.splice(-2)
  return { ...reply, pieces: [event({ ...prompt, usage: null }), first, second, behind, ...rest, behind, ...tail] }
}

function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}
