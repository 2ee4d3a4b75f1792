import type { Socket } from 'node:net'
import type { RightAnswer } from './right-answer.ts'

/** How a vendor misbehaves once it has the request. */
export type VendorFault =
  | 'hang before the headers'
  | 'hang after the headers'
  | 'hang in the body'
  | 'reset before the headers'
  | 'reset in the body'
  | 'close before the headers'
  | 'close in the body'
  | 'half an answer'
  | 'garbage in the body'
  | 'garbage instead of HTTP'
  | 'garbage after the answer'
  | 'endless headers'
  | 'endless body'
  | 'endless page'
  | 'one byte at a time'
  | 'empty answer'
  | 'status 400'
  | 'status 401'
  | 'status 429'
  | 'status 500'
  | 'status 503'
  | 'page with status 502'
  | 'redirect'

type Strike = (socket: Socket, answer: RightAnswer) => void

const BLOCK = 'x'.repeat(64 * 1024)

/** Between what is written and a reset, so that the other side has read what was written. */
const BEFORE_RESET_MS = 30
/** Far below the time after which silence is a fault, so that only the time for the request as a whole ends it. */
const BYTE_EVERY_MS = 100

/** Action of each fault on a connection with a request. */
export const STRIKES: ReadonlyMap<VendorFault, Strike> = new Map<VendorFault, Strike>([
  ['hang before the headers', () => undefined],
  ['hang after the headers', (socket, answer) => socket.write(headOf(answer))],
  ['hang in the body', (socket, answer) => socket.write(headOf(answer) + framed(answer, answer.first))],
  ['reset before the headers', (socket) => socket.resetAndDestroy()],
  [
    'reset in the body',
    (socket, answer) => {
      socket.write(headOf(answer) + framed(answer, answer.first))
      setTimeout(() => socket.resetAndDestroy(), BEFORE_RESET_MS)
    },
  ],
  ['close before the headers', (socket) => socket.end()],
  ['close in the body', (socket, answer) => socket.end(headOf(answer) + framed(answer, answer.first))],
  ['half an answer', (socket, answer) => socket.write(wholeOf({ ...answer, second: '' }))],
  [
    'garbage in the body',
    (socket, answer) => socket.write(wholeOf({ ...answer, first: '\u0001\u0002{{', second: '' })),
  ],
  ['garbage instead of HTTP', (socket) => socket.write('\u0000\u0001\u0002 this is no HTTP\r\n\r\n')],
  ['garbage after the answer', (socket, answer) => socket.write(`${wholeOf(answer)}HTTP/1.1 200 OK\r\n\u0000\r\n\r\n`)],
  [
    'endless headers',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      writeForEver(socket, `x-more: ${'y'.repeat(1024)}\r\n`)
    },
  ],
  [
    'endless body',
    (socket, answer) => {
      socket.write(`${chunkedHead(answer.type)}${chunk(answer.form === 'stream' ? 'data: ' : '"')}`)
      writeForEver(socket, chunk(BLOCK))
    },
  ],
  [
    'endless page',
    (socket) => {
      socket.write(chunkedHead('text/html'))
      writeForEver(socket, chunk(BLOCK))
    },
  ],
  [
    'one byte at a time',
    (socket, answer) => {
      const text = wholeOf(answer)
      const headBytes = text.indexOf('\r\n\r\n') + 4
      socket.write(text.slice(0, headBytes))
      let position = headBytes
      const timer = setInterval(() => {
        socket.write(text.slice(position, position + 1))
        position += 1
        if (position === text.length) clearInterval(timer)
      }, BYTE_EVERY_MS)
      socket.once('close', () => clearInterval(timer))
    },
  ],
  ['empty answer', (socket, answer) => socket.write(wholeOf({ ...answer, first: '', second: '' }))],
  ['status 400', refusal(400, 'wrong_size')],
  ['status 401', refusal(401, 'invalid_api_key')],
  ['status 429', refusal(429, 'rate_limit_exceeded')],
  ['status 500', refusal(500, 'server_error')],
  ['status 503', refusal(503, 'server_is_overloaded')],
  ['page with status 502', (socket) => socket.write(message('502 Bad Gateway', 'text/html', '<h1>Bad gateway</h1>'))],
  [
    'redirect',
    (socket) => socket.write('HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n'),
  ],
])

/** All faults of a vendor that has the request. */
export const VENDOR_FAULTS: readonly VendorFault[] = [...STRIKES.keys()]

/** Gives the right answer. */
export function answerRightly(socket: Socket, answer: RightAnswer): void {
  socket.write(wholeOf(answer))
}

function refusal(status: number, code: string): Strike {
  const body = JSON.stringify({ error: { message: 'The vendor says no.', type: 'error', param: null, code } })
  return (socket) => socket.write(message(`${status} No`, 'application/json', body))
}

function wholeOf(answer: RightAnswer): string {
  const { form, type, first, second } = answer
  if (form !== 'stream') return message('200 OK', type, first + second)
  return `${chunkedHead(type)}${chunk(first)}${chunk(second)}0\r\n\r\n`
}

function message(status: string, type: string, body: string): string {
  return `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

function headOf({ form, type, first, second }: RightAnswer): string {
  if (form === 'stream') return chunkedHead(type)
  return `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(first + second)}\r\n\r\n`
}

function framed({ form }: RightAnswer, text: string): string {
  return form === 'stream' ? chunk(text) : text
}

function chunkedHead(type: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`
}

function chunk(text: string): string {
  return text === '' ? '' : `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

function writeForEver(socket: Socket, text: string): void {
  const write = (): void => {
    // The last write before the buffer is full reports it; `drain` follows once the other side has read.
    while (!socket.destroyed && socket.write(text));
  }
  socket.on('drain', write)
  write()
}
