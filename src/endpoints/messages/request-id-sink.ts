import type { ByteSink } from '../../core/exchange.ts'

/**
 * The caller's side with one header more: clients of the dialect read the id of a request from `request-id` (Anthropic,
 * "Errors", request id), on answers and errors alike.
 */
export function requestIdSink(sink: ByteSink, requestId: string): ByteSink {
  return {
    get closed() {
      return sink.closed
    },
    head: (status, headers) => sink.head(status, [...headers, 'request-id', requestId]),
    write: (bytes) => sink.write(bytes),
    end: (bytes) => sink.end(bytes),
    destroy: () => sink.destroy(),
    onDrain: (listener) => sink.onDrain(listener),
    onClose: (listener) => sink.onClose(listener),
  }
}
