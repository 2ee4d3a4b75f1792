import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { SDK_MODELS } from '../../support/sdk-model-ids.ts'
import { messagesLoop } from '../messages/messages-loop.ts'
import {
  CODING_CLIENT_HEADERS,
  codingClientRequest,
  PRINT_MODE_HEADERS,
  printModeRequest,
} from '../messages/messages-requests.ts'
import { type SdkGateway, type SdkVendor, startSdkGateway } from '../models/sdk-gateway.ts'

/** Model ids that Claude Code 2.1.332 sends for `opus` (its default), `sonnet`, `haiku` and `fable`. */
const CLAUDE_CODE_MODELS = ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-haiku-5-5', 'claude-fable-5-2'] as const

/** Default model of Codex 0.171. */
const CODEX_MODEL = 'gpt-6.2-sol'

let sdk: SdkGateway

beforeAll(async () => {
  sdk = await startSdkGateway()
})
afterAll(() => sdk.close())

/** Models of the calls that a vendor answered, and how many of the gateway's answers were charged. */
async function callsAndCharges(vendor: SdkVendor, responses: readonly Response[]): Promise<[string[], number]> {
  const ends = await Promise.all(responses.map((response) => sdk.started.ended(response)))
  const models = sdk.vendors[vendor].calls.slice(-responses.length).map(({ model }) => model)
  return [models, ends.filter(({ costNanoDollars }) => costNanoDollars > 0n).length]
}

describe.each(CLAUDE_CODE_MODELS)('Claude Code with its default %s', (model) => {
  test.each([
    ['interactive mode', codingClientRequest, CODING_CLIENT_HEADERS],
    ['print mode', printModeRequest, PRINT_MODE_HEADERS],
  ] as const)('completes a tool loop in %s for the list price', async (_mode, requestOf, headers) => {
    const rounds = await messagesLoop(sdk.started, requestOf(model, 'call Bash and Read'), headers)
    const responses = rounds.map(({ response }) => response)

    expect(rounds[0]?.blocks.filter(({ type }) => type === 'tool_use').map(({ name }) => name)).toEqual([
      'Bash',
      'Read',
    ])
    expect(rounds.at(-1)?.blocks.at(-1)).toEqual({ type: 'text', text: 'The tools answered: done | done' })
    expect(await callsAndCharges('anthropic', responses)).toEqual([[model, model], 2])
    expect(responses.map(({ headers: sent }) => sent.get('x-signalbox-dropped'))).toEqual([null, null])
  })
})

test(`Codex with its default ${CODEX_MODEL} completes a tool loop for the list price`, async () => {
  const file = new URL('../responses/fixtures/coding-client/tools-in-input.json', import.meta.url)
  const request = JSON.parse(readFileSync(file, 'utf8')) as { readonly input: readonly object[] }
  const responses: Response[] = []
  const outputOf = async (input: readonly object[]): Promise<readonly Record<string, unknown>[]> => {
    const response = await sdk.started.post('/v1/responses', { ...request, model: CODEX_MODEL, input })
    const text = await response.text()
    expect([response.status, text]).toEqual([200, expect.stringContaining('event: response.completed')])
    responses.push(response)
    return checkGrammar(responseEvents(text))['output'] as readonly Record<string, unknown>[]
  }
  const content = [{ type: 'input_text', text: 'call functions__exec' }]
  const input = [...request.input, { type: 'message', role: 'user', content }]

  const output = await outputOf(input)
  const call = output.find(({ type }) => type === 'custom_tool_call')
  expect(call).toMatchObject({ namespace: 'functions', name: 'exec', input: expect.any(String) })
  const result = { type: 'custom_tool_call_output', call_id: call?.['call_id'], output: 'sunny' }
  expect(JSON.stringify(await outputOf([...input, ...output, result]))).toContain('The tools answered: sunny')
  expect(await callsAndCharges('openai', responses)).toEqual([[CODEX_MODEL, CODEX_MODEL], 2])
})

test('the default models of the coding clients are in the types of the SDKs', () => {
  expect(SDK_MODELS.anthropic).toEqual(expect.arrayContaining([...CLAUDE_CODE_MODELS]))
  expect(SDK_MODELS.openai).toContain(CODEX_MODEL)
})
