import type { ChatPrompt, PromptTool } from '../model/chat-prompt.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'
import { partsOf } from './gemini-content-checks.ts'
import { field } from './gemini-fields.ts'

/** Reads a request in the format of Gemini's `generateContent`, whatever its shape. */
export function readContentsPrompt(body: unknown): ChatPrompt {
  const contents = asList(asObject(body)['contents'])
  const spoken = contents.filter((content) => asObject(content)['role'] !== 'model' && textOf(content) !== '')
  const lastSpoken = spoken.at(-1)
  const config = field(body, 'generationConfig')
  const schema = field(config, 'responseJsonSchema') ?? field(config, 'responseSchema')
  const calling = field(field(body, 'toolConfig'), 'functionCallingConfig')
  const thinking = field(config, 'thinkingConfig')
  return {
    texts: [
      textOf(field(body, 'systemInstruction')),
      ...contents.flatMap((content) => [textOf(content), ...resultTexts(content)]),
    ],
    lastUserText: textOf(lastSpoken),
    lastUserImages: partsOf(lastSpoken).filter((part) => isGiven(field(part, 'inlineData') ?? field(part, 'fileData')))
      .length,
    toolResults: resultTexts(contents.at(-1)),
    ...toolUse(readTools(body), calling),
    parallelToolCalls: true,
    json:
      field(config, 'responseMimeType') === 'application/json'
        ? { schema: isGiven(schema) ? asObject(schema) : undefined }
        : undefined,
    reasoning: isGiven(thinking) && field(thinking, 'thinkingBudget') !== 0 && thinks(thinking),
    maxTokens: asNumber(field(config, 'maxOutputTokens')),
    stop: asList(field(config, 'stopSequences')).map(asText),
    prefill: '',
  }
}

function thinks(thinking: unknown): boolean {
  return (
    ['thinkingLevel', 'thinkingBudget'].some((name) => isGiven(field(thinking, name))) ||
    field(thinking, 'includeThoughts') === true
  )
}

function textOf(content: unknown): string {
  return partsOf(content)
    .filter((part) => asObject(part)['thought'] !== true)
    .map((part) => asText(asObject(part)['text']))
    .join('')
}

/** What functions answered: the text where the answer is one text, else its JSON. */
function resultTexts(content: unknown): string[] {
  return partsOf(content)
    .map((part) => field(part, 'functionResponse'))
    .filter(isGiven)
    .map((result) => {
      const response = asObject(asObject(result)['response'])
      const [only, ...others] = Object.values(response)
      return typeof only === 'string' && others.length === 0 ? only : JSON.stringify(response)
    })
}

function readTools(body: unknown): PromptTool[] {
  return asList(field(body, 'tools'))
    .flatMap((tool) => asList(field(tool, 'functionDeclarations')))
    .map((declaration) => ({
      name: asText(asObject(declaration)['name']),
      schema: asObject(field(declaration, 'parameters') ?? field(declaration, 'parametersJsonSchema')),
    }))
    .filter((tool) => tool.name !== '')
}

function toolUse(tools: readonly PromptTool[], calling: unknown): Pick<ChatPrompt, 'tools' | 'toolChoice'> {
  const allowed = asList(field(calling, 'allowedFunctionNames')).map(asText)
  const offered = allowed.length === 0 ? tools : tools.filter((tool) => allowed.includes(tool.name))
  const mode = field(calling, 'mode')
  if (mode === 'NONE') return { tools: offered, toolChoice: 'none' }
  return { tools: offered, toolChoice: mode === 'ANY' ? 'required' : 'auto' }
}
