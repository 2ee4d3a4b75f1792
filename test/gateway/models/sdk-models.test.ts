import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BUILT_IN_SNAPSHOT } from '../../../src/catalog/vendor-models/snapshot.ts'
import { NO_ROW, SDK_MODELS, undated } from '../../support/sdk-model-ids.ts'
import { chatBody, TEST_KEY } from '../../support/start-gateway.ts'
import { messagesBody } from '../messages/messages-requests.ts'
import { isTextModel, SDK_VENDORS, type SdkGateway, type SdkVendor, startSdkGateway } from './sdk-gateway.ts'

/** How a caller writes a request for one text, and where the answer has its parts. */
interface TextEndpoint {
  readonly path: string
  readonly body: (model: string, text: string) => Readonly<Record<string, unknown>>
  readonly tool: Readonly<Record<string, unknown>>
  /** Text that a stream contains only with a tool call. */
  readonly call: RegExp
  readonly tokens: readonly [input: string, output: string]
}

const PROMPT = 'good morning'
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

const TEXT_ENDPOINTS: Readonly<Record<string, TextEndpoint>> = {
  'chat completions': {
    path: '/v1/chat/completions',
    body: chatBody,
    tool: { type: 'function', function: { name: 'get_weather', parameters: PARAMETERS } },
    call: /"tool_calls":\s*\[[^\]]*"get_weather"/,
    tokens: ['prompt_tokens', 'completion_tokens'],
  },
  Messages: {
    path: '/v1/messages',
    body: messagesBody,
    tool: { name: 'get_weather', input_schema: PARAMETERS },
    call: /"type":\s*"tool_use"[^}]*"get_weather"/,
    tokens: ['input_tokens', 'output_tokens'],
  },
  Responses: {
    path: '/v1/responses',
    body: (model, input) => ({ model, input }),
    tool: { type: 'function', name: 'get_weather', parameters: PARAMETERS, strict: false },
    call: /"type":\s*"function_call"[^}]*"get_weather"/,
    tokens: ['input_tokens', 'output_tokens'],
  },
}

interface TextAnswer {
  readonly model: string
  readonly usage: Readonly<Record<string, number>>
}

let sdk: SdkGateway

beforeAll(async () => {
  sdk = await startSdkGateway()
})
afterAll(() => sdk.close())

/** Models of a vendor's SDK that answer a text with a text, without those that the vendor had ended on the day of the catalog. */
function textModels(vendor: SdkVendor): readonly string[] {
  const models = BUILT_IN_SNAPSHOT.of(vendor)
  return SDK_MODELS[vendor].filter((id) => {
    const retires = (models.get(id) ?? models.get(undated(id)))?.retires ?? Number.POSITIVE_INFINITY
    return isTextModel(id) && NO_ROW[undated(id)] === undefined && retires * 1000 > Date.parse(BUILT_IN_SNAPSHOT.date)
  })
}

const callCounts = (): readonly number[] => SDK_VENDORS.map((id) => sdk.vendors[id].calls.length)

/** Returns the price of a call by the prices in the list of models, in nano-dollars. */
async function listedPrice(model: string, input: number, output: number): Promise<number> {
  const answer = await fetch(`${sdk.started.url}/v1/models/${model}`, {
    headers: { authorization: `Bearer ${TEST_KEY}` },
  })
  const { pricing } = (await answer.json()) as { pricing?: { prompt: string; completion: string } }
  return Math.round((Number(pricing?.prompt) * input + Number(pricing?.completion) * output) * 1e9)
}

/** Calls a model. Returns what is wrong with the answer, the call of the vendor or the charge; `undefined` if nothing is. */
async function faultOf(vendor: SdkVendor, endpoint: TextEndpoint, model: string): Promise<string | undefined> {
  const { started, vendors } = sdk
  const before = callCounts()
  const { balance } = await started.account()
  const answer = await started.post(endpoint.path, endpoint.body(model, PROMPT))
  const text = await answer.text()
  if (answer.status !== 200) return `${answer.status} ${text}`
  await started.ended(answer)
  const called = callCounts().map((count, index) => count - before[index]!)
  const sentAs = vendors[vendor].calls.at(-1)?.model
  if (called.join() !== SDK_VENDORS.map((id) => Number(id === vendor)).join()) return `calls of vendors: ${called}`
  if (sentAs !== model) return `sent as ${sentAs}`
  if (!text.includes(`You said: ${PROMPT}`)) return `answered ${text}`
  const { model: answered, usage } = JSON.parse(text) as TextAnswer
  if (answered !== model) return `answered as ${answered}`
  const [input = 0, output = 0] = endpoint.tokens.map((name) => usage[name])
  const due = await listedPrice(model, input, output)
  const charged = Number(balance - (await started.account()).balance)
  const isListedPrice = charged > 0 && Math.abs(charged - due) <= 1
  return isListedPrice ? undefined : `charged ${charged} of ${due} for ${JSON.stringify(usage)}`
}

/** Streams an answer with a call of a tool. Returns what is wrong with it; `undefined` if nothing is. */
async function streamFaultOf(vendor: SdkVendor, endpoint: TextEndpoint, model: string): Promise<string | undefined> {
  const body = { ...endpoint.body(model, 'call get_weather'), tools: [endpoint.tool], stream: true }
  const answer = await sdk.started.post(endpoint.path, body)
  const text = await answer.text()
  if (answer.status !== 200 || !endpoint.call.test(text)) return `${answer.status} ${text}`
  const { costNanoDollars, ending } = await sdk.started.ended(answer)
  if (ending !== 'completed' || costNanoDollars <= 0n) return `${ending} for ${costNanoDollars}`
  const sentAs = sdk.vendors[vendor].calls.at(-1)?.model
  return sentAs === model ? undefined : `sent as ${sentAs}`
}

describe.each(SDK_VENDORS)('text models in the types of the SDK of %s', (vendor) => {
  async function faultsOf(check: typeof faultOf, endpoint: TextEndpoint): Promise<Record<string, string>> {
    const faults: Record<string, string> = {}
    for (const model of textModels(vendor)) {
      const fault = await check(vendor, endpoint, model)
      if (fault !== undefined) faults[model] = fault
    }
    return faults
  }

  test.each(Object.entries(TEXT_ENDPOINTS))('answers %s at its own vendor for its price', async (_name, endpoint) => {
    expect(await faultsOf(faultOf, endpoint)).toEqual({})
  })

  test.each(Object.entries(TEXT_ENDPOINTS))(
    'calls tools in streams of %s at its own vendor',
    async (_name, endpoint) => {
      expect(await faultsOf(streamFaultOf, endpoint)).toEqual({})
    },
  )
})

test('finds the newest models of each vendor in the types of its SDK', () => {
  expect(textModels('openai')).toEqual(expect.arrayContaining(['gpt-6.2-sol', 'gpt-5-pro', 'gpt-4o-2024-08-06']))
  expect(textModels('anthropic')).toEqual(expect.arrayContaining(['claude-opus-5-5', 'claude-haiku-4-5-20251001']))
  expect(textModels('gemini')).toEqual(expect.arrayContaining(['gemini-4-argon', 'gemini-3.8-flash']))
})
