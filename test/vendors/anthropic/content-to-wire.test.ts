import { describe, expect, it } from 'vitest'
import { translated } from './chat-call.ts'

const withPart = (part: unknown, role = 'user') => ({
  messages: [
    { role: 'user', content: 'Hi' },
    { role, content: [{ type: 'text', text: 'See' }, part] },
  ],
})

it('a file of plain text is a document of text', () => {
  const file = {
    filename: 'notes.txt',
    file_data: `data:text/plain;base64,${Buffer.from('Grüezi').toString('base64')}`,
  }
  const { body } = translated(withPart({ type: 'file', file }))

  expect(body.messages.at(-1)?.content.at(-1)).toEqual({
    type: 'document',
    source: { type: 'text', media_type: 'text/plain', data: 'Grüezi' },
    title: 'notes.txt',
  })
})

describe('content that Anthropic cannot take', () => {
  it.each([
    [
      'an SVG picture',
      { type: 'image_url', image_url: { url: 'data:image/svg+xml;base64,PHN2Zy8+' } },
      '.image_url.url',
    ],
    [
      'a picture that is not base64',
      { type: 'image_url', image_url: { url: 'data:image/png,%89PNG' } },
      '.image_url.url',
    ],
    ['a picture by another scheme', { type: 'image_url', image_url: { url: 'file:///etc/passwd' } }, '.image_url.url'],
    [
      'a file that is neither PDF nor text',
      { type: 'file', file: { file_data: 'data:text/csv;base64,YQ==' } },
      '.file.file_data',
    ],
    ['a file without a data URL', { type: 'file', file: { file_data: 'JVBERi0=' } }, '.file.file_data'],
  ])('refuses %s as invalid, naming the part', (_what, part, suffix) => {
    expect(() => translated(withPart(part))).toThrow(
      expect.objectContaining({ code: 'invalid_request', status: 400, param: `messages[1].content[1]${suffix}` }),
    )
  })

  it.each([
    ['audio', { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } }, ''],
    ['an unknown type', { type: 'hologram' }, ''],
    ['a file by id', { type: 'file', file: { file_id: 'file-9' } }, '.file'],
    ['a file without a body', { type: 'file' }, '.file'],
  ])('refuses %s as unsupported, naming the part', (_what, part, suffix) => {
    expect(() => translated(withPart(part))).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', status: 400, param: `messages[1].content[1]${suffix}` }),
    )
  })

  it.each(['system', 'assistant'])('rejects an image in a message of role %s', (role) => {
    const picture = { type: 'image_url', image_url: { url: 'https://pictures.example/a.png' } }

    expect(() => translated(withPart(picture, role))).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: 'messages[1].content[1]' }),
    )
  })
})
