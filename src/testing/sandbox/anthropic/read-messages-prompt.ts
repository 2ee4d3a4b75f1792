import type { ChatPrompt } from '../model/chat-prompt.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'
import { anthropicModelRules } from './anthropic-model-rules.ts'
import { blocksOf } from './content-blocks.ts'

type Json = Readonly<Record<string, unknown>>

/** Reads a request in the format of Anthropic's Messages, whatever its shape. */
export function readMessagesPrompt(body: unknown): ChatPrompt {
  const request = asObject(body)
  const messages = asList(request['messages']).map(asObject)
  const userTurns = messages.filter((message) => message['role'] === 'user')
  const lastSpoken = userTurns.findLast((message) => textOf(message) !== '') ?? {}
  const last = messages.at(-1) ?? {}
  const results = last['role'] === 'user' && textOf(last) === '' ? resultTexts(last) : []
  const choice = asObject(request['tool_choice'])
  const format = asObject(asObject(request['output_config'])['format'])
  return {
    texts: [
      systemText(request['system']),
      ...messages.flatMap((message) => [textOf(message), ...resultTexts(message)]),
    ],
    lastUserText: textOf(lastSpoken),
    lastUserImages: blocksOf(lastSpoken).filter((block) => block['type'] === 'image').length,
    toolResults: results,
    tools: asList(request['tools'])
      .map(asObject)
      .map((tool) => ({ name: asText(tool['name']), schema: asObject(tool['input_schema']) }))
      .filter((tool) => tool.name !== ''),
    toolChoice: toolChoice(choice),
    parallelToolCalls: choice['disable_parallel_tool_use'] !== true,
    json: format['type'] === 'json_schema' ? { schema: asObject(format['schema']) } : undefined,
    reasoning: isThinking(request),
    maxTokens: asNumber(request['max_tokens']),
    stop: asList(request['stop_sequences']).map(asText),
    prefill: last['role'] === 'assistant' ? textOf(last) : '',
  }
}

function isThinking(request: Json): boolean {
  const { thinking } = request
  if (!isGiven(thinking)) return anthropicModelRules(asText(request['model'])).thinksByDefault
  return ['enabled', 'adaptive', 'between_tools'].includes(asText(asObject(thinking)['type']))
}

function systemText(system: unknown): string {
  if (typeof system === 'string') return system
  return asList(system)
    .map((block) => asText(asObject(block)['text']))
    .join('')
}

function textOf(message: Json): string {
  return blocksOf(message)
    .filter((block) => block['type'] === 'text')
    .map((block) => asText(block['text']))
    .join('')
}

function resultTexts(message: Json): string[] {
  return blocksOf(message)
    .filter((block) => block['type'] === 'tool_result')
    .map((block) => textOf({ content: block['content'] }))
}

function toolChoice(choice: Json): ChatPrompt['toolChoice'] {
  if (choice['type'] === 'tool') return { name: asText(choice['name']) }
  if (choice['type'] === 'any') return 'required'
  return choice['type'] === 'none' ? 'none' : 'auto'
}
