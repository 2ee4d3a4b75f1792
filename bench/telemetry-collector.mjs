// Receives the data of OTLP exporters on a port that it prints. It is a separate process, so that its time is not counted.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
