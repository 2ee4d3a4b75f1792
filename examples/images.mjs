// @ts-check
/*
 * Requests an image in every shape of the gateway, and writes the images to a folder.
 *
 *   npm run build && node examples/images.mjs
 *
 * IMAGES_FOLDER is the folder of the images. Default: `images` in the current folder.
 *
 * It calls the vendors whose keys are in the environment (OPENAI_API_KEY, GEMINI_API_KEY, DASHSCOPE_API_KEY), and leaves
 * out the shapes of the others. Without any of them it uses offline stand-ins, so it runs without an account.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createApiKey, createGateway, dashscope, gemini, openai } from 'signalbox'
import { nodeHandler } from 'signalbox/node'
import { sandboxVendors } from 'signalbox/testing'

const { env } = process
const folder = env.IMAGES_FOLDER ?? 'images'
const names = ['OPENAI_API_KEY', 'GEMINI_API_KEY', 'DASHSCOPE_API_KEY']
const sandbox = names.some((name) => env[name]) ? undefined : sandboxVendors()
// On a port, because the links in one shape's answers are fetched below.
const baseURL = sandbox && (await sandbox.listen()).origin
const connection = (/** @type {string} */ name) => (sandbox ? { apiKey: 'stand-in', baseURL } : { apiKey: env[name] })

const apiKey = createApiKey()
const gateway = createGateway({
  vendors: [
    openai(connection('OPENAI_API_KEY')),
    gemini(connection('GEMINI_API_KEY')),
    dashscope(connection('DASHSCOPE_API_KEY')),
  ],
  keys: [{ key: apiKey, account: 'customer-1' }],
  billing: 'off',
})
const server = createServer(nodeHandler(gateway))
await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())

/**
 * Posts a form, or any other body as JSON, and returns the answer.
 * @param {string} path
 * @param {FormData | object} body
 */
async function post(path, body) {
  const isForm = body instanceof FormData
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, ...(isForm ? {} : { 'content-type': 'application/json' }) },
    body: isForm ? body : JSON.stringify(body),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${response.status}: ${answer.error.message}`)
  return answer
}

/**
 * Makes the call if its vendor is configured, and writes the image.
 * @param {string} name of the file
 * @param {string} key that its vendor needs
 * @param {() => Promise<Uint8Array>} make
 */
async function picture(name, key, make) {
  if (sandbox === undefined && !env[key]) return console.log(`${name} left out: set ${key}`)
  const bytes = await make()
  await writeFile(join(folder, name), bytes)
  console.log(`${name} ${bytes.byteLength} bytes`)
}

const fromBase64 = (/** @type {string} */ text) => Buffer.from(text, 'base64')

await mkdir(folder, { recursive: true })
try {
  await picture('generation.png', 'OPENAI_API_KEY', async () => {
    const prompt = 'a paper boat on a desk, morning light'
    const answer = await post('/v1/images/generations', {
      model: 'gp-image-2',
      prompt,
      size: '1024x1024',
      quality: 'low',
    })
    const drawn = fromBase64(answer.data[0].b64_json)
    // A second request, sent as a form, edits the image.
    await picture('edit.webp', 'OPENAI_API_KEY', async () => {
      const form = new FormData()
      form.append('model', 'gp-image-2')
      form.append('prompt', 'add a gull')
      form.append('output_format', 'webp')
      form.append('image', new Blob([drawn], { type: 'image/png' }), 'boat.png')
      const edited = await post('/v1/images/edits', form)
      return fromBase64(edited.data[0].b64_json)
    })
    return drawn
  })

  await picture('interaction.jpg', 'GEMINI_API_KEY', async () => {
    const model = 'gmn-3.1-flash-image-preview'
    const format = { type: 'image', image_size: '1K', aspect_ratio: '4:3', mime_type: 'image/jpeg' }
    const first = await post('/v1/images/generations', {
      model,
      input: 'a blue mug on a table',
      response_format: format,
    })
    // The vendor keeps the history, so the image need not be sent again.
    const second = await post('/v1/images/generations', {
      model,
      input: 'make the mug green',
      previous_interaction_id: first.id,
      response_format: format,
    })
    const { steps } = /** @type {{ steps: { content?: { type: string, data: string }[] }[] }} */ (second)
    // Text and image are in separate steps.
    const image = steps.flatMap(({ content }) => content ?? []).find(({ type }) => type === 'image')
    if (image === undefined) throw new Error(`no image received: ${second.status}`)
    return fromBase64(image.data)
  })

  await picture('multimodal.png', 'DASHSCOPE_API_KEY', async () => {
    const answer = await post('/v1/images/generations', {
      model: 'qw-image-2.0',
      input: { messages: [{ role: 'user', content: [{ text: 'a paper boat on a desk' }] }] },
      parameters: { size: '1664*928' },
    })
    // The signed link expires after a day: store the image, not the link.
    const file = await fetch(answer.output.choices[0].message.content[0].image)
    if (!file.ok) throw new Error(`the image cannot be fetched: ${file.status}`)
    return new Uint8Array(await file.arrayBuffer())
  })
} finally {
  server.close()
  await gateway.close({ drainMs: 10_000 })
  await sandbox?.close()
}
