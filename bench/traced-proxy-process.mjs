// A proxy that notes when the parts of one stream are handed over; `first-byte-trace.mjs` reads the notes. One stream at a
// time, so that each note belongs to it. Node's own methods are wrapped before anything else is imported.
import { IncomingMessage, OutgoingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { answerQuestions } from './child-process.mjs'
import { HANDOVERS } from './trace-handovers.mjs'

/** Notes of the streams since the last call: of the first bytes, and of each later chunk. */
let streams = []
let current
let piece

const isOfCaller = (socket) => socket.server !== undefined && socket.server !== null

/** Records the time of a name; only the first call counts. */
function note(name) {
  if (current === undefined) return
  const notes = piece ?? current.first
  notes[name] ??= performance.now()
  if (name === HANDOVERS.sentToCaller) piece = {}
}

function wrap(prototype, method, before) {
  const original = prototype[method]
  prototype[method] = function wrapped(...given) {
    before(this, ...given)
    return original.apply(this, given)
  }
}

wrap(Server.prototype, 'emit', (_server, event, request) => {
  if (event !== 'request') return
  current = { first: {}, pieces: [] }
  piece = undefined
  streams.push(current)
  note(HANDOVERS.requested)
  IncomingMessage.prototype.once.call(request, 'end', () => note(HANDOVERS.bodyRead))
})
wrap(Socket.prototype, '_writeGeneric', (socket) => {
  if (!isOfCaller(socket)) return note(HANDOVERS.sentToVendor)
  note(HANDOVERS.sentToCaller)
})
wrap(Socket.prototype, 'push', (socket, chunk) => {
  if (isOfCaller(socket) || chunk === null || current === undefined) return
  if (piece !== undefined) {
    piece = {}
    current.pieces.push(piece)
  }
  note(HANDOVERS.answered)
})
wrap(ServerResponse.prototype, 'writeHead', () => note(HANDOVERS.headWritten))
wrap(OutgoingMessage.prototype, 'write', (message) => {
  if (message instanceof ServerResponse) note(HANDOVERS.bytesWritten)
})

const [proxyFile, upstreamPort] = process.argv.slice(2)
const { serve } = await import(proxyFile)
const { server } = await serve({ upstreamPort: Number(upstreamPort) })

server.listen({ port: 0, host: '127.0.0.1' }, () => {
  answerQuestions(
    { port: server.address().port },
    {
      takeNotes: () => {
        const taken = streams
        streams = []
        current = undefined
        piece = undefined
        return taken
      },
    },
  )
})
