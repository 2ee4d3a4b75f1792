// Servers of OpenAI's dialect by preset, and Azure OpenAI. Offline: stand-ins answer, each with the deviations of its server.
// Run: node examples/vendors.mjs
import { azureOpenai, createGateway, openaiCompatible } from 'signalbox'
import { presets } from 'signalbox/presets'
import { sandboxVendors } from 'signalbox/testing'

const sandbox = sandboxVendors()
const { origin } = await sandbox.listen()

/** A vendor of a preset at its stand-in. With real servers, leave `baseURL` out. */
const standIn = (preset) =>
  openaiCompatible(preset, {
    ...(preset.needsKey ? { apiKey: 'any' } : {}),
    baseURL: `${origin}/presets/${preset.id}/v1`,
    models: [{ id: preset.id, kind: 'chat', upstream: 'some-model' }],
  })

const gateway = createGateway({
  vendors: [
    standIn(presets.groq),
    standIn(presets.mistral),
    standIn(presets.ollama),
    azureOpenai({
      endpoint: origin,
      apiKey: 'any',
      models: [{ id: 'azure', kind: 'chat', upstream: 'my-deployment' }],
    }),
  ],
  billing: 'off',
  keys: [{ key: 'sk-example', account: 'acct_example' }],
})
await gateway.start()

for (const model of ['groq', 'mistral', 'ollama', 'azure']) {
  const response = await gateway.fetch(
    new Request('http://gateway.example/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: 'Bearer sk-example', 'content-type': 'application/json' },
      body: JSON.stringify({
        model,
        max_completion_tokens: 50,
        seed: 7,
        messages: [{ role: 'user', content: 'Say hello' }],
      }),
    }),
  )
  const { choices } = await response.json()
  const dropped = response.headers.get('x-signalbox-dropped') ?? 'nothing'
  console.log(`${model}: ${choices[0].message.content} (dropped: ${dropped})`)
}

await gateway.close()
await sandbox.close()
