// Takes what OTLP exporters send, on a port that it prints. A process of its own, so that its time is not counted.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
