import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../find-program.mjs'
import { freePort, reasonAgainst, startProgram } from '../../program-process.mjs'

export const name = 'peers/nginx'
export const title = 'nginx'
export const isPeer = true
export const isNodeProgram = false
export const isTranslating = false

export const missing = () => reasonAgainst('nginx', ' (on Debian: `apt-get install nginx-light`)')

/** Reads the version that `nginx -v` writes to standard error: `nginx version: nginx/1.22.1`. */
export function version() {
  const program = findProgram('nginx')
  if (program === undefined) return undefined
  return /nginx\/(\S+)/.exec(spawnSync(program, ['-v'], { encoding: 'utf8' }).stderr)?.[1]
}

/** nginx as a proxy for streams: connections to the vendor kept open, nothing buffered in either direction. */
export async function launch({ upstreamPort, core }) {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-nginx-'))
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, configuration({ port, upstreamPort, folder, isRoot: process.getuid?.() === 0 }))
  return startProgram([findProgram('nginx'), '-p', folder, '-e', 'stderr', '-c', file], {
    core,
    port,
    onStop: () => rmSync(folder, { recursive: true, force: true }),
  })
}

/** Sizes of buffers are nginx's defaults. As root, workers would otherwise run as a user who may not enter `folder`. */
function configuration({ port, upstreamPort, folder, isRoot }) {
  return `${isRoot ? 'user root;' : ''}
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  client_max_body_size 0;
  keepalive_requests 1000000000;
  upstream vendor {
    server 127.0.0.1:${upstreamPort};
    keepalive 1024;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://vendor;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`
}
