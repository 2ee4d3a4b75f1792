import { type ChatPrompt, type ChatTurn, chatTurn, words } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import { type AnswerContext, jsonReply, type SandboxOperation, type SandboxReply } from '../sandbox-operation.ts'
import { checkAccess, checkModelId } from './bedrock-access.ts'
import { BEDROCK_ERRORS, BEDROCK_HEADERS } from './bedrock-errors.ts'
import { checkConverse } from './converse-checks.ts'
import { eventOf, exceptionOf } from './event-frame.ts'

const PATH = /^\/bedrock\/model\/([^/]+)\/(converse|converse-stream)$/

/** Amazon Bedrock by Converse: whole answers, and streams in binary frames. */
export const BEDROCK_CONVERSE: SandboxOperation = {
  vendor: 'amazon-bedrock',
  operation: 'chat',
  errors: { ...BEDROCK_ERRORS, streamEvent: () => exceptionOf('modelStreamErrorException', 'The model failed.') },
  matches: ({ method, path }) => method === 'POST' && PATH.test(path),
  promptText: (body) => conversePrompt(asObject(body)).lastUserText,
  answer(call, context) {
    checkAccess(call, context.nowMs)
    const [, id = '', method] = PATH.exec(call.path) ?? []
    checkModelId(decodeURIComponent(id))
    const request = asObject(call.body)
    checkConverse(request)
    const turn = chatTurn(conversePrompt(request), context)
    return method === 'converse' ? whole(turn, context) : streamed(turn, context)
  },
}

function whole(turn: ChatTurn, context: AnswerContext): SandboxReply {
  const content = blocksOf(turn, context.id).map(({ block }) => block)
  return jsonReply(200, BEDROCK_HEADERS, {
    metrics: { latencyMs: 12 },
    output: { message: { role: 'assistant', content } },
    stopReason: stopReason(turn),
    usage: context.usage(usageOf(turn)),
  })
}

function streamed(turn: ChatTurn, context: AnswerContext): SandboxReply {
  const usage = context.usage(usageOf(turn))
  const pieces = [
    eventOf('messageStart', { role: 'assistant' }),
    ...blocksOf(turn, context.id).flatMap(({ start, deltas }, contentBlockIndex) => [
      ...(start === undefined ? [] : [eventOf('contentBlockStart', { contentBlockIndex, start })]),
      ...deltas.map((delta) => eventOf('contentBlockDelta', { contentBlockIndex, delta })),
      eventOf('contentBlockStop', { contentBlockIndex }),
    ]),
    eventOf('messageStop', { stopReason: stopReason(turn) }),
    ...(usage === undefined ? [] : [eventOf('metadata', { metrics: { latencyMs: 12 }, usage })]),
  ]
  const headers = ['content-type', 'application/vnd.amazon.eventstream', ...BEDROCK_HEADERS]
  return { status: 200, headers, pieces, streamed: true }
}

interface AnswerBlock {
  readonly block: Fields
  /** Only calls of tools have one. */
  readonly start?: Fields
  readonly deltas: readonly Fields[]
}

function blocksOf(turn: ChatTurn, id: string): AnswerBlock[] {
  const blocks: AnswerBlock[] = []
  if (turn.reasoning.length > 0) {
    const signature = `signed-${id}`
    const deltas = turn.reasoning.map((text) => ({ reasoningContent: { text } }))
    blocks.push({
      block: { reasoningContent: { reasoningText: { text: turn.reasoning.join(''), signature } } },
      deltas: [...deltas, { reasoningContent: { signature } }],
    })
  }
  if (turn.words.length > 0)
    blocks.push({ block: { text: turn.words.join('') }, deltas: turn.words.map((text) => ({ text })) })
  turn.toolCalls.forEach((call, index) => {
    const head = { toolUseId: `tooluse_${id}${index}`, name: call.name }
    const pieces = Object.keys(call.arguments).length === 0 ? [] : words(JSON.stringify(call.arguments))
    blocks.push({
      block: { toolUse: { ...head, input: call.arguments } },
      start: { toolUse: head },
      deltas: pieces.map((input) => ({ toolUse: { input } })),
    })
  })
  return blocks
}

function stopReason({ ending }: ChatTurn): string {
  switch (ending) {
    case 'length':
      return 'max_tokens'
    case 'stop-sequence':
      return 'stop_sequence'
    case 'tool-calls':
      return 'tool_use'
    case 'blocked':
      return 'content_filtered'
    default:
      return 'end_turn'
  }
}

/** The cached tokens are not among the input tokens. */
function usageOf({ usage: { prompt, cached, cacheWrite, completion } }: ChatTurn): Fields {
  const inputTokens = prompt - cached - cacheWrite
  return {
    inputTokens,
    outputTokens: completion,
    totalTokens: prompt + completion,
    cacheReadInputTokens: cached,
    cacheWriteInputTokens: cacheWrite,
  }
}

function conversePrompt(request: Fields): ChatPrompt {
  const messages = asList(request['messages']).map(asObject)
  const last = messages.at(-1) ?? {}
  const spoken = messages.findLast((message) => message['role'] === 'user' && textsOf(message).length > 0) ?? {}
  const config = asObject(request['toolConfig'])
  const choice = asObject(config['toolChoice'])
  const inference = asObject(request['inferenceConfig'])
  const additional = asObject(request['additionalModelRequestFields'])
  const format = asObject(asObject(request['outputConfig'])['textFormat'])
  const schema = asText(asObject(asObject(format['structure'])['jsonSchema'])['schema'])
  const thinks = (value: unknown): boolean => ['enabled', 'adaptive'].includes(asText(asObject(value)['type']))
  return {
    texts: [
      ...textsOf({ content: request['system'] }),
      ...messages.flatMap((one) => [...textsOf(one), ...resultsOf(one)]),
    ],
    lastUserText: textsOf(spoken).join(''),
    lastUserImages: contentOf(spoken).filter((block) => isGiven(block['image'])).length,
    toolResults: last['role'] === 'user' && textsOf(last).length === 0 ? resultsOf(last) : [],
    tools: asList(config['tools']).flatMap((tool) => {
      const spec = asObject(asObject(tool)['toolSpec'])
      const name = asText(spec['name'])
      return name === '' ? [] : [{ name, schema: asObject(asObject(spec['inputSchema'])['json']) }]
    }),
    toolChoice: isGiven(choice['tool'])
      ? { name: asText(asObject(choice['tool'])['name']) }
      : isGiven(choice['any'])
        ? 'required'
        : 'auto',
    parallelToolCalls: true,
    json: schema === '' ? undefined : { schema: asObject(JSON.parse(schema)) },
    reasoning: thinks(additional['thinking']) || thinks(additional['reasoningConfig']),
    maxTokens: asNumber(inference['maxTokens']),
    stop: asList(inference['stopSequences']).map(asText),
    prefill: last['role'] === 'assistant' ? textsOf(last).join('') : '',
  }
}

function contentOf(message: Fields): Fields[] {
  return asList(message['content']).map(asObject)
}

function textsOf(message: Fields): string[] {
  return contentOf(message)
    .map((block) => asText(block['text']))
    .filter((text) => text !== '')
}

function resultsOf(message: Fields): string[] {
  return contentOf(message)
    .filter((block) => isGiven(block['toolResult']))
    .map((block) => textsOf(asObject(block['toolResult'])).join(''))
}
