# syntax=docker/dockerfile:1

# Builds the package from this source.
FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN mkdir packed && npm run build && npm pack --ignore-scripts --pack-destination packed

# Installs it as a user would, with the packages for every store, for /mcp and for the hook jsonAnswer.
FROM node:24-slim AS install
WORKDIR /app
COPY --from=build /build/packed/ packed/
RUN npm install --omit=dev --ignore-scripts --no-audit --no-fund \
    "./$(ls packed/*.tgz)" pg@8 ioredis@6 @photostructure/sqlite@1 @modelcontextprotocol/server@2 \
    @cfworker/json-schema@4 jsonrepair@3 \
    && rm -r packed

FROM node:24-slim
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8787 \
    SIGNALBOX_STORE=sqlite:/data/signalbox.db \
    SIGNALBOX_LOG=json
COPY --from=install /app /app
# The only folder that is written to, and only by the store sqlite:.
RUN mkdir /data && chown 1000:1000 /data
WORKDIR /data
VOLUME /data
USER 1000:1000
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/node_modules/signalbox/dist/cli.js"]
CMD ["serve"]
